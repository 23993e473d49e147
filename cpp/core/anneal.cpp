#include "anneal.hpp"

#include <cmath>

#include "parallel.hpp"
#include "random_members.hpp"

namespace fedsel {
namespace {

constexpr std::uint64_t kCheckEvery = 16;  // evaluations between two looks at the clock

Chain run_chain(const LossModel& model, const AnnealingOptions& options, std::size_t number, Leaderboard& board,
                Control& control) {
  const auto n = static_cast<std::uint32_t>(model.clients());
  const auto k = static_cast<std::uint32_t>(options.k);
  Philox random(options.seed, number);
  Evaluator evaluator(model);
  Federation federation(model,
                        options.initial_states.empty() ? random_members(n, k, random) : options.initial_states[number]);
  Members outsiders;
  for (std::uint32_t client = 0; client < n; ++client)
    if (!federation.contains(client)) outsiders.push_back(client);

  Chain chain;
  double loss = evaluator.loss(federation.sums());
  chain.evaluations = 1;
  chain.best = {loss, federation.members()};
  board.add(loss, federation.members());
  AlignedVector<std::int32_t> trial(model.stride(), 0);
  std::uint64_t reported = 0;
  for (double temperature : options.temperatures) {
    for (std::size_t step = 0; step < options.evaluations_per_level && !outsiders.empty(); ++step) {
      if (chain.evaluations >= options.max_evaluations) break;
      if (chain.evaluations % kCheckEvery == 0) {
        control.evaluations.fetch_add(chain.evaluations - reported, std::memory_order_relaxed);
        reported = chain.evaluations;
        if (control.stopped()) break;
      }
      const std::uint32_t position = random.below(k), slot = random.below(n - k);
      const std::uint32_t out = federation.members()[position], in = outsiders[slot];
      evaluator.exchange(federation.sums(), out, in, trial.data());
      const double proposed = evaluator.loss(trial.data());
      ++chain.evaluations;
      if (proposed > loss && random.uniform() >= std::exp((loss - proposed) / temperature)) continue;
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

AnnealingResult anneal(const LossModel& model, const AnnealingOptions& options, Control& control) {
  std::vector<Leaderboard> boards(options.chains, Leaderboard(options.keep));
  AnnealingResult result{Leaderboard(options.keep), std::vector<Chain>(options.chains)};
  control.planned =
      options.chains *
      std::min<std::uint64_t>(options.max_evaluations, 1 + options.temperatures.size() * options.evaluations_per_level);
  parallel_for(options.chains, options.threads, [&](std::size_t number) {
    result.chains[number] = run_chain(model, options, number, boards[number], control);
  });
  for (const auto& board : boards) result.board.merge(board);
  return result;
}

}  // namespace fedsel
