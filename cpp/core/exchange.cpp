#include "exchange.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "enumerate.hpp"

namespace fedsel {
namespace {

constexpr double kRounding = 1e-12;  // bits; the kernels agree with exact arithmetic to less
constexpr std::size_t kBases = 256;  // choices of leaving members a time: their sums are kept, 12 KB each or so

// The next subset of positions below `count`, in lexicographic order; false after the last.
bool advance(std::vector<std::size_t>& positions, std::size_t count) {
  for (std::size_t i = positions.size(); i-- > 0;) {
    if (positions[i] + (positions.size() - i) >= count) continue;
    std::iota(positions.begin() + static_cast<std::ptrdiff_t>(i), positions.end(), positions[i] + 1);
    return true;
  }
  return false;
}

Members without(const Members& from, const Members& what) {
  Members rest;
  std::set_difference(from.begin(), from.end(), what.begin(), what.end(), std::back_inserter(rest));
  return rest;
}

// Evaluates all exchanges of exactly `size` members; stops early once one improves the loss. False if the control
// stopped it.
bool try_exchanges(const Problem& problem, const Members& members, double loss, std::size_t size, std::size_t threads,
                   Control& control, Leaderboard& board) {
  const Members chosen = without(members, problem.fixed()), outsiders = without(problem.free(), members);
  if (size > chosen.size() || size > outsiders.size()) return true;
  std::vector<std::size_t> positions(size);
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  for (bool more = true; more;) {
    std::vector<Members> bases;
    while (more && bases.size() < kBases) {
      Members leaving;
      for (auto position : positions) leaving.push_back(chosen[position]);
      bases.push_back(without(members, leaving));
      more = advance(positions, chosen.size());
    }
    if (!enumerate_completions(problem, bases, outsiders, size, threads, control, board)) return false;
    if (board.entries()[0].loss < loss - kRounding) return true;
  }
  return true;
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
  for (std::size_t leaving = 1; leaving <= std::min(size, problem.choices()); ++leaving) {
    if (!try_exchanges(problem, members, loss, leaving, threads, control, result.board)) return result;
    const Candidate& best = result.board.entries()[0];
    if (best.loss >= loss - kRounding) continue;
    loss = best.loss;
    members = best.members;
    leaving = 0;  // from there, all sizes again
  }
  result.optimal = members;
  return result;
}

}  // namespace fedsel
