#include "baselines.hpp"

#include <limits>

#include "parallel.hpp"
#include "polish.hpp"

namespace fedsel {

SimpleResult greedy(const Problem& problem, std::size_t keep, std::uint64_t seed, Control& control) {
  const LossModel& model = problem.model();
  const Candidates candidates(problem, problem.free());
  Evaluator evaluator(model);
  Philox random(seed, 0);
  Members members = problem.fixed();
  while (members.size() < problem.k()) {
    const Federation federation(model, members);
    const Balance balance(problem, members);
    double best = std::numeric_limits<double>::infinity();
    std::uint32_t choice = 0;
    bool found = false;
    for (const bool strict : {true, false}) {  // where every client breaks a bound, one that does is repaired later
      const bool ended = candidates.try_all(
          federation, federation.sums(), evaluator, control,
          [&](std::uint32_t in) { return !strict || balance.excess_with(in) == 0.0; },
          [&](std::uint32_t in, double loss) {
            if (loss < best) best = loss, choice = in, found = true;
          });
      if (!ended || found || !problem.constrained()) break;
    }
    if (!found) break;
    members.push_back(choice);
  }
  SimpleResult result{Leaderboard(keep), {}};
  if (members.size() < problem.k()) {  // stopped: complete the federation at random
    members = problem.random_start(random);
  } else {
    members = problem.start(
        Members(members.begin() + static_cast<std::ptrdiff_t>(problem.fixed().size()), members.end()), random);
  }
  result.board.add(evaluator.loss(sum_rows(model, members).data()), members);
  return result;
}

SimpleResult descend(const Problem& problem, const std::vector<Members>& starts, std::size_t random_starts,
                     std::size_t keep, std::size_t threads, std::uint64_t seed, Control& control) {
  const SwapDescent descent(problem);
  const std::size_t count = starts.empty() ? random_starts : starts.size();
  std::vector<Leaderboard> boards(count, Leaderboard(keep));
  std::vector<Candidate> ends(count, Candidate{std::numeric_limits<double>::infinity(), {}});
  std::vector<std::uint8_t> optimal(count, 0);
  parallel_for(count, threads, [&](std::size_t start, std::size_t) {
    if (start > 0 && control.stopped()) return;
    Evaluator evaluator(problem.model());
    Philox random(seed, start);
    Federation federation(problem.model(), starts.empty() ? problem.random_start(random) : starts[start]);
    double loss = evaluator.loss(federation.sums());
    control.evaluations.fetch_add(1, std::memory_order_relaxed);
    boards[start].add(loss, federation.members());
    optimal[start] = descent.run_steepest(federation, loss, evaluator, control, boards[start]);
    ends[start] = {loss, federation.members()};
    std::sort(ends[start].members.begin(), ends[start].members.end());
  });
  SimpleResult result{Leaderboard(keep), {}};
  std::size_t winner = 0;
  for (std::size_t start = 0; start < count; ++start) {
    result.board.merge(boards[start]);
    if (ends[start] < ends[winner]) winner = start;
  }
  if (optimal[winner] != 0) result.certified = ends[winner].members;
  return result;
}

}  // namespace fedsel
