#include "quadratic_anneal.hpp"

#include <cmath>

#include "parallel.hpp"
#include "polish.hpp"
#include "quadratic.hpp"

namespace fedsel {
namespace {

constexpr double kHopeless = 40.0;           // exp(-40) is below what a uniform number resolves
constexpr std::uint64_t kCheckEvery = 1024;  // evaluations between two looks at the clock

// The best state of one chain under the model: fixed members first.
Members run_chain(const Problem& problem, const QuadraticModel& model, const AnnealingOptions& options,
                  std::size_t number, Control& control) {
  const auto fixed = static_cast<std::uint32_t>(problem.fixed().size());
  const auto choices = static_cast<std::uint32_t>(problem.choices());
  Philox random(options.seed, number);
  Members members = options.initial_states.empty() ? problem.random_start(random) : options.initial_states[number];
  Balance balance(problem, members);
  std::vector<std::uint8_t> inside(problem.model().clients(), 0);
  for (auto client : members) inside[client] = 1;
  Members outsiders;
  for (auto client : problem.free())
    if (!inside[client]) outsiders.push_back(client);
  const auto outside = static_cast<std::uint32_t>(outsiders.size());
  if (choices == 0 || outside == 0) return members;

  Members best = members;
  double best_loss = model.loss(members);
  std::uint64_t evaluations = 1, reported = 0;
  for (double temperature : options.temperatures) {
    QuadraticState state(model, members);  // afresh: rounding does not pile up
    double loss = state.loss();
    for (std::size_t step = 0; step < options.evaluations_per_level; ++step) {
      if (evaluations >= options.max_evaluations) break;
      if (evaluations % kCheckEvery == 0) {
        control.evaluations.fetch_add(evaluations - reported, std::memory_order_relaxed);
        reported = evaluations;
        if (control.stopped()) break;
      }
      const auto [choice, slot] = random.below(choices, outside);
      const std::uint32_t position = fixed + choice, out = members[position], in = outsiders[slot];
      ++evaluations;
      if (problem.constrained() && balance.violation_after(out, in) > 0.0) continue;
      const double proposed = state.swapped_loss(out, in);
      if (proposed > loss) {
        const double steps = (proposed - loss) / temperature;
        if (steps > kHopeless) continue;
        // exp(-x) < 1 / (1 + x + x^2 / 2) refuses most without an exponential.
        const double chance = random.uniform();
        if (chance * (1.0 + steps * (1.0 + 0.5 * steps)) >= 1.0 || chance >= std::exp(-steps)) continue;
      }
      balance.swap(out, in);
      state.swap(out, in);
      members[position] = in;
      outsiders[slot] = out;
      loss = proposed;
      if (loss < best_loss) best_loss = loss, best = members;
    }
    if (evaluations >= options.max_evaluations || control.stopped()) break;
  }
  control.evaluations.fetch_add(evaluations - reported, std::memory_order_relaxed);
  return best;
}

// Beyond the clients that the couplings have room for. A swap under the model would then be evaluated from the features
// of two clients, as long as their rows: that takes as long as the bound on its exact loss (change_body.hpp) that
// annealing refuses most proposals by.
QuadraticAnnealingResult anneal_exactly(const Problem& problem, const AnnealingOptions& options, Control& control) {
  QuadraticAnnealingResult result{anneal(problem, options, control).board, {}};
  Evaluator evaluator(problem.model());
  result.certified = descend_best(problem, evaluator, control, result.board);
  return result;
}

}  // namespace

QuadraticAnnealingResult anneal_quadratic(const Problem& problem, const AnnealingOptions& options, Control& control) {
  if (problem.model().clients() > QuadraticModel::kMaxClients) return anneal_exactly(problem, options, control);
  control.planned =
      options.chains *
      std::min<std::uint64_t>(options.max_evaluations, 1 + options.temperatures.size() * options.evaluations_per_level);
  Members reference = problem.fixed();
  reference.insert(reference.end(), problem.free().begin(), problem.free().end());
  const QuadraticModel quadratic(problem.model(), reference, options.threads, control);
  std::vector<Leaderboard> boards(options.chains, Leaderboard(options.keep));
  const SwapDescent descent(problem);
  parallel_for(options.chains, options.threads, [&](std::size_t number, std::size_t) {
    if (number > 0 && control.stopped()) return;
    Evaluator evaluator(problem.model());
    Philox random(options.seed, number);
    Federation federation(problem.model(), quadratic.ready() ? run_chain(problem, quadratic, options, number, control)
                                                             : problem.random_start(random));
    double loss = evaluator.loss(federation.sums());
    boards[number].add(loss, federation.members());
    descent.run(federation, loss, evaluator, control, boards[number]);
  });
  QuadraticAnnealingResult result{Leaderboard(options.keep), {}};
  for (const auto& board : boards) result.board.merge(board);
  Evaluator evaluator(problem.model());
  result.certified = descend_best(problem, evaluator, control, result.board);
  return result;
}

}  // namespace fedsel
