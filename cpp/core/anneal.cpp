#include "anneal.hpp"

#include <cmath>

#include "parallel.hpp"

namespace fedsel {
namespace {

constexpr std::uint64_t kCheckEvery = 16;  // evaluations between two looks at the clock

Chain run_chain(const Problem& problem, const AnnealingOptions& options, std::size_t number, Leaderboard& board,
                Control& control) {
  const LossModel& model = problem.model();
  const auto fixed = static_cast<std::uint32_t>(problem.fixed().size());
  const auto choices = static_cast<std::uint32_t>(problem.choices());
  Philox random(options.seed, number);
  Evaluator evaluator(model);
  Federation federation(model,
                        options.initial_states.empty() ? problem.random_start(random) : options.initial_states[number]);
  Balance balance(problem, federation.members());
  Members outsiders;
  for (auto client : problem.free())
    if (!federation.contains(client)) outsiders.push_back(client);
  const auto outside = static_cast<std::uint32_t>(outsiders.size());
  const std::size_t steps = choices > 0 && outside > 0 ? options.evaluations_per_level : 0;

  Chain chain;
  double loss = evaluator.loss(federation.sums());
  chain.evaluations = 1;
  chain.best = {loss, federation.members()};
  board.add(loss, federation.members());
  AlignedVector<std::int32_t> trial(model.stride(), 0);
  std::uint64_t reported = 0;
  // Each proposal is drawn one step ahead, so that its rows are on their way while the one before is evaluated.
  std::uint32_t next_position = 0, next_slot = 0;
  const auto draw = [&] {
    next_position = fixed + random.below(choices);
    next_slot = random.below(outside);
  };
  if (steps > 0) draw();
  for (double temperature : options.temperatures) {
    for (std::size_t step = 0; step < steps; ++step) {
      if (chain.evaluations >= options.max_evaluations) break;
      if (chain.evaluations % kCheckEvery == 0) {
        control.evaluations.fetch_add(chain.evaluations - reported, std::memory_order_relaxed);
        reported = chain.evaluations;
        if (control.stopped()) break;
      }
      const std::uint32_t position = next_position, slot = next_slot;
      const std::uint32_t out = federation.members()[position], in = outsiders[slot];
      draw();
      if (problem.constrained() && balance.violation_after(out, in) > 0.0) {
        ++chain.evaluations;  // a refused proposal counts, so that chains end
        continue;
      }
      const double proposed = evaluator.exchange_loss(federation.sums(), out, in, trial.data(),
                                                      {federation.members()[next_position], outsiders[next_slot]});
      ++chain.evaluations;
      if (proposed > loss && random.uniform() >= std::exp((loss - proposed) / temperature)) continue;
      balance.swap(out, in);
      federation.swap(position, in, trial);
      outsiders[slot] = out;
      loss = proposed;
      board.add(loss, federation.members());
      if (loss < chain.best.loss) chain.best = {loss, federation.members()};
    }
    chain.trace.push_back(loss);
    if (chain.evaluations >= options.max_evaluations || control.stopped()) break;
  }
  control.evaluations.fetch_add(chain.evaluations - reported, std::memory_order_relaxed);
  std::sort(chain.best.members.begin(), chain.best.members.end());
  return chain;
}

}  // namespace

AnnealingResult anneal(const Problem& problem, const AnnealingOptions& options, Control& control) {
  std::vector<Leaderboard> boards(options.chains, Leaderboard(options.keep));
  AnnealingResult result{Leaderboard(options.keep), std::vector<Chain>(options.chains)};
  control.planned =
      options.chains *
      std::min<std::uint64_t>(options.max_evaluations, 1 + options.temperatures.size() * options.evaluations_per_level);
  parallel_for(options.chains, options.threads, [&](std::size_t number, std::size_t) {
    result.chains[number] = run_chain(problem, options, number, boards[number], control);
  });
  for (const auto& board : boards) result.board.merge(board);
  return result;
}

}  // namespace fedsel
