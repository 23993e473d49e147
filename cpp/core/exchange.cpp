#include "exchange.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "enumerate.hpp"

namespace fedsel {
namespace {

constexpr double kRounding = 1e-12;  // bits; the kernels agree with exact arithmetic to less

// The next subset of positions below `count`, in lexicographic order; false after the last.
bool advance(std::vector<std::size_t>& positions, std::size_t count) {
  for (std::size_t i = positions.size(); i-- > 0;) {
    if (positions[i] + (positions.size() - i) >= count) continue;
    std::iota(positions.begin() + static_cast<std::ptrdiff_t>(i), positions.end(), positions[i] + 1);
    return true;
  }
  return false;
}

// The problem in which only these of the chosen members may leave.
Problem around(const Problem& problem, const Members& members, const Members& leaving) {
  Members kept, free;
  std::set_difference(members.begin(), members.end(), leaving.begin(), leaving.end(), std::back_inserter(kept));
  std::set_difference(problem.free().begin(), problem.free().end(), kept.begin(), kept.end(), std::back_inserter(free));
  return Problem(problem.model(), problem.k(), std::move(kept), std::move(free), problem.constraints(),
                 problem.constrained() ? members : Members{});
}

}  // namespace

ExchangeResult descend_by_exchanges(const Problem& problem, const Members& start, std::size_t size, std::size_t keep,
                                    std::size_t threads, Control& control) {
  ExchangeResult result{Leaderboard(keep), {}};
  Evaluator evaluator(problem.model());
  Members members = start;
  std::sort(members.begin(), members.end());
  double loss = evaluator.loss(sum_rows(problem.model(), members).data());
  result.board.add(loss, members);
  size = std::min(size, problem.choices());
  for (bool improved = true; improved;) {
    improved = false;
    Members chosen;
    std::set_difference(members.begin(), members.end(), problem.fixed().begin(), problem.fixed().end(),
                        std::back_inserter(chosen));
    std::vector<std::size_t> positions(size);
    std::iota(positions.begin(), positions.end(), std::size_t{0});
    do {
      Members leaving;
      for (auto position : positions) leaving.push_back(chosen[position]);
      if (!enumerate_into(around(problem, members, leaving), threads, control, result.board)) return result;
      const Candidate& best = result.board.entries()[0];
      if (best.loss < loss - kRounding) {
        loss = best.loss;
        members = best.members;
        improved = true;
      }
    } while (!improved && advance(positions, chosen.size()));
  }
  result.optimal = members;
  return result;
}

}  // namespace fedsel
