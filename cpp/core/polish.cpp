#include "polish.hpp"

#include <optional>

namespace fedsel {
namespace {

constexpr int kMaxDescents = 8;      // ties can send the last descent to another federation a few times
constexpr double kRounding = 1e-12;  // bits; the kernels agree with exact arithmetic to less

}  // namespace

Candidates::Candidates(const Problem& problem, Members clients) : problem_(problem), clients_(std::move(clients)) {
  const std::size_t block_cells = problem.model().cells() * kLanes, n = clients_.size();
  if (padded(n) / kLanes * block_cells * sizeof(std::int32_t) > kMostStored) return;
  lanes_.resize(padded(n) / kLanes * block_cells);
  for (std::size_t first = 0; first < n; first += kLanes)
    fill_lanes(problem.model(), clients_.data() + first, 1, std::min(kLanes, n - first),
               lanes_.data() + first / kLanes * block_cells);
}

bool SwapDescent::best_at(std::size_t position, const Federation& federation, const Balance& balance,
                          Evaluator& evaluator, Control& control, Leaderboard& board, Swap& best) const {
  const LossModel& model = problem_.model();
  const std::uint32_t out = federation.members()[position];
  AlignedVector<std::int32_t> base(model.stride(), 0);
  const std::int32_t* leaving = model.row(out);
  for (std::size_t c = 0; c < model.cells(); ++c) base[c] = federation.sums()[c] - leaving[c];
  return candidates_.try_all(
      federation, base.data(), evaluator, control,
      [&](std::uint32_t in) { return !problem_.constrained() || balance.violation_after(out, in) == 0.0; },
      [&](std::uint32_t in, double loss) {
        if (loss <= board.threshold()) {
          Members neighbour = federation.members();
          neighbour[position] = in;
          board.add(loss, std::move(neighbour));
        }
        if (loss < best.loss) best = {loss, position, in};
      });
}

bool SwapDescent::run(Federation& federation, double& loss, Evaluator& evaluator, Control& control,
                      Leaderboard& board) const {
  const std::size_t fixed = problem_.fixed().size(), choices = problem_.choices();
  Balance balance(problem_, federation.members());
  for (std::size_t turn = 0, unchanged = 0; unchanged < choices; ++turn, ++unchanged) {
    const std::size_t position = fixed + turn % choices;
    Swap best{loss - kRounding, problem_.k(), 0};
    if (!best_at(position, federation, balance, evaluator, control, board, best)) return false;
    if (best.position == problem_.k()) continue;
    balance.swap(federation.members()[position], best.client);
    federation.swap(evaluator, position, best.client);
    loss = best.loss;
    unchanged = 0;  // this place was just optimised, but the others must be tried again
  }
  return true;
}

bool SwapDescent::run_steepest(Federation& federation, double& loss, Evaluator& evaluator, Control& control,
                               Leaderboard& board) const {
  Balance balance(problem_, federation.members());
  for (;;) {
    Swap best{loss - kRounding, problem_.k(), 0};
    for (std::size_t position = problem_.fixed().size(); position < problem_.k(); ++position)
      if (!best_at(position, federation, balance, evaluator, control, board, best)) return false;
    if (best.position == problem_.k()) return true;
    balance.swap(federation.members()[best.position], best.client);
    federation.swap(evaluator, best.position, best.client);
    loss = best.loss;
  }
}

Members descend_best(const Problem& problem, Evaluator& evaluator, Control& control, Leaderboard& board) {
  Members certified;
  std::optional<SwapDescent> descent;
  // A tie may put another federation on top of the board meanwhile: then that one.
  for (int round = 0; round < kMaxDescents && !control.stopped(); ++round) {
    if (!descent) descent.emplace(problem);
    Members members = problem.fixed();
    for (auto client : board.entries()[0].members)
      if (!std::binary_search(problem.fixed().begin(), problem.fixed().end(), client)) members.push_back(client);
    Federation federation(problem.model(), members);
    double loss = board.entries()[0].loss;
    if (!descent->run(federation, loss, evaluator, control, board)) break;
    certified = federation.members();
    std::sort(certified.begin(), certified.end());
    board.add(loss, certified);
    if (board.entries()[0].members == certified) break;
  }
  return certified;
}

}  // namespace fedsel
