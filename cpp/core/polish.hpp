// Descent by swaps: to a federation that no single swap improves.
#pragma once

#include "control.hpp"
#include "leaderboard.hpp"

namespace fedsel {

class SwapDescent {
 public:
  explicit SwapDescent(const LossModel& model);

  // For each member in turn, tries all outsiders in its place and takes the best of them if it improves the loss by
  // more than rounding; ends when a whole sweep changes nothing (true: swap-optimal) or the control stops it (false).
  bool run(Federation& federation, double& loss, Evaluator& evaluator, Control& control, Leaderboard& board) const;

 private:
  const LossModel& model_;
  AlignedVector<std::int32_t> lanes_;  // all clients, kLanes a block
};

}  // namespace fedsel
