// Descent by swaps: to a federation that no single swap improves.
#pragma once

#include "control.hpp"
#include "leaderboard.hpp"
#include "problem.hpp"

namespace fedsel {

// All free clients, transposed kLanes at a time; shared by the searches that try every client in a place.
class FreeLanes {
 public:
  explicit FreeLanes(const Problem& problem);

  // Calls visit(client, loss) for every free client outside `federation` whose addition to the sums `base` keeps
  // `allowed(client)` true; in increasing order of clients. Returns false if the control stopped it.
  template <class Allowed, class Visit>
  bool try_all(const Federation& federation, const std::int32_t* base, Evaluator& evaluator, Control& control,
               Allowed allowed, Visit visit) const;

 private:
  const Problem& problem_;
  AlignedVector<std::int32_t> lanes_;
};

class SwapDescent {
 public:
  explicit SwapDescent(const Problem& problem) : problem_(problem), lanes_(problem) {}

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
  FreeLanes lanes_;
};

template <class Allowed, class Visit>
bool FreeLanes::try_all(const Federation& federation, const std::int32_t* base, Evaluator& evaluator, Control& control,
                        Allowed allowed, Visit visit) const {
  const Members& free = problem_.free();
  const std::size_t block_cells = problem_.model().cells() * kLanes;
  double losses[kLanes];
  bool wanted[kLanes];
  for (std::size_t first = 0; first < free.size(); first += kLanes) {
    if (control.stopped()) return false;
    const std::size_t count = std::min(kLanes, free.size() - first);
    std::uint64_t evaluated = 0;
    for (std::size_t l = 0; l < count; ++l) {
      wanted[l] = !federation.contains(free[first + l]) && allowed(free[first + l]);
      evaluated += wanted[l];
    }
    if (evaluated == 0) continue;
    evaluator.lane_losses(base, lanes_.data() + first / kLanes * block_cells, losses);
    control.evaluations.fetch_add(evaluated, std::memory_order_relaxed);
    for (std::size_t l = 0; l < count; ++l)
      if (wanted[l]) visit(free[first + l], losses[l]);
  }
  return true;
}

}  // namespace fedsel
