// Descent by swaps: to a federation that no single swap improves.
#pragma once

#include <utility>

#include "control.hpp"
#include "lane_blocks.hpp"
#include "leaderboard.hpp"
#include "problem.hpp"

namespace fedsel {

// Clients to try in a place, transposed kLanes at a time: beforehand where that takes little memory, else whenever they
// are tried, so that large pools are never held twice.
class Candidates {
 public:
  // `clients`: free ones, increasing.
  Candidates(const Problem& problem, Members clients);

  // Calls visit(client, loss) for every candidate outside `federation` for which `allowed(client)` is true, with the
  // loss of the sums `base` plus its row; in increasing order of clients. Returns false if the control stopped it.
  template <class Allowed, class Visit>
  bool try_all(const Federation& federation, const std::int32_t* base, Evaluator& evaluator, Control& control,
               Allowed allowed, Visit visit) const;

 private:
  static constexpr std::size_t kMostStored = std::size_t{1} << 26;  // bytes

  const Problem& problem_;
  Members clients_;
  AlignedVector<std::int32_t> lanes_;  // empty where not stored
};

class SwapDescent {
 public:
  // Tries all free clients.
  explicit SwapDescent(const Problem& problem) : SwapDescent(problem, problem.free()) {}
  // Tries these clients only.
  SwapDescent(const Problem& problem, Members clients) : problem_(problem), candidates_(problem, std::move(clients)) {}

  // For each member in turn, tries all outsiders in its place and takes the best of them if it improves the loss by
  // more than rounding; ends when a whole sweep changes nothing (true: swap-optimal) or the control stops it (false).
  // The federation must meet the constraints, and its first members be the fixed ones.
  bool run(Federation& federation, double& loss, Evaluator& evaluator, Control& control, Leaderboard& board) const;

  // The same, but every step is the best of all swaps.
  bool run_steepest(Federation& federation, double& loss, Evaluator& evaluator, Control& control,
                    Leaderboard& board) const;

 private:
  struct Swap {
    double loss;
    std::size_t position;
    std::uint32_t client;
  };
  bool best_at(std::size_t position, const Federation& federation, const Balance& balance, Evaluator& evaluator,
               Control& control, Leaderboard& board, Swap& best) const;

  const Problem& problem_;
  Candidates candidates_;
};

// Descends from the best federation on the board, trying all clients. Returns one that no single swap improves, usually
// the best on the board then; nothing if the control stopped it.
Members descend_best(const Problem& problem, Evaluator& evaluator, Control& control, Leaderboard& board);

template <class Allowed, class Visit>
bool Candidates::try_all(const Federation& federation, const std::int32_t* base, Evaluator& evaluator, Control& control,
                         Allowed allowed, Visit visit) const {
  const std::size_t block_cells = problem_.model().cells() * kLanes;
  AlignedVector<std::int32_t> block(lanes_.empty() ? block_cells : 0);
  double losses[kLanes];
  bool wanted[kLanes];
  for (std::size_t first = 0; first < clients_.size(); first += kLanes) {
    if (control.stopped()) return false;
    const std::size_t count = std::min(kLanes, clients_.size() - first);
    std::uint64_t evaluated = 0;
    for (std::size_t l = 0; l < count; ++l) {
      wanted[l] = !federation.contains(clients_[first + l]) && allowed(clients_[first + l]);
      evaluated += wanted[l];
    }
    if (evaluated == 0) continue;
    if (lanes_.empty()) fill_lanes(problem_.model(), clients_.data() + first, 1, count, block.data());
    evaluator.lane_losses(base, lanes_.empty() ? block.data() : lanes_.data() + first / kLanes * block_cells, losses);
    control.evaluations.fetch_add(evaluated, std::memory_order_relaxed);
    for (std::size_t l = 0; l < count; ++l)
      if (wanted[l]) visit(clients_[first + l], losses[l]);
  }
  return true;
}

}  // namespace fedsel
