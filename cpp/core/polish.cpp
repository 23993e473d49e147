#include "polish.hpp"

#include <numeric>

#include "lane_blocks.hpp"

namespace fedsel {
namespace {

constexpr double kRounding = 1e-12;  // bits; the kernels agree with exact arithmetic to less

}  // namespace

SwapDescent::SwapDescent(const LossModel& model) : model_(model) {
  const std::size_t block_cells = model.cells() * kLanes, n = model.clients();
  lanes_.resize(padded(n) / kLanes * block_cells);
  Members all(n);
  std::iota(all.begin(), all.end(), 0u);
  for (std::size_t first = 0; first < n; first += kLanes)
    fill_lanes(model, all.data() + first, 1, std::min(kLanes, n - first), lanes_.data() + first / kLanes * block_cells);
}

bool SwapDescent::run(Federation& federation, double& loss, Evaluator& evaluator, Control& control,
                      Leaderboard& board) const {
  const std::size_t n = model_.clients(), k = federation.size(), block_cells = model_.cells() * kLanes;
  AlignedVector<std::int32_t> base(model_.stride(), 0);
  double losses[kLanes];
  std::size_t unchanged = 0;
  for (std::size_t position = 0; unchanged < k; position = (position + 1) % k, ++unchanged) {
    const std::int32_t* leaving = model_.row(federation.members()[position]);
    for (std::size_t c = 0; c < model_.cells(); ++c) base[c] = federation.sums()[c] - leaving[c];
    double best = loss - kRounding;
    std::size_t best_client = n;
    for (std::size_t first = 0; first < n; first += kLanes) {
      if (control.stopped()) return false;
      evaluator.lane_losses(base.data(), lanes_.data() + first / kLanes * block_cells, losses);
      std::uint64_t evaluated = 0;
      for (std::size_t l = 0; l < kLanes && first + l < n; ++l) {
        const auto client = static_cast<std::uint32_t>(first + l);
        if (federation.contains(client)) continue;
        ++evaluated;
        if (losses[l] <= board.threshold()) {
          Members neighbour = federation.members();
          neighbour[position] = client;
          board.add(losses[l], std::move(neighbour));
        }
        if (losses[l] < best) {
          best = losses[l];
          best_client = client;
        }
      }
      control.evaluations.fetch_add(evaluated, std::memory_order_relaxed);
    }
    if (best_client < n) {
      federation.swap(evaluator, position, static_cast<std::uint32_t>(best_client));
      loss = best;
      unchanged = 0;  // this position was just optimised, but the others must be tried again
    }
  }
  return true;
}

}  // namespace fedsel
