#include "enumerate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "lane_blocks.hpp"
#include "parallel.hpp"

namespace fedsel {
namespace {

// log2 of the number of records in a federation of average clients.
float typical_total(const Problem& problem) {
  const LossModel& model = problem.model();
  double sum = 0.0;
  for (std::size_t i = 0; i < model.clients(); ++i)
    for (std::size_t c = 0; c < model.cells(); ++c) sum += model.row(i)[c];
  const double records = sum / static_cast<double>(model.tables().size() * model.clients());
  return static_cast<float>(std::log2(std::max(1.0, records * static_cast<double>(problem.k()))));
}

// A federation is the fixed members, a prefix of free ones, and a tail of one or two later free ones (later in the list
// of free clients: positions there are what the code below counts in). Tails are listed in lexicographic order and cut
// into blocks of kLanes, whose transposed sums stay in the L2 cache while all prefixes that end before the block's last
// tail run over it. Tails in a block that start inside the prefix are evaluated and ignored: they exist only where the
// first tail client changes within a block, so nearly every lane does useful work.
class BlockSearch {
 public:
  BlockSearch(const Problem& problem, std::size_t prefix, std::size_t tail, std::size_t keep, Control& control)
      : problem_(problem),
        model_(problem.model()),
        evaluator_(model_),
        origin_(typical_total(problem)),
        prefix_(prefix),
        tail_(tail),
        board_(keep),
        control_(control),
        lanes_(model_.cells() * kLanes),
        sums_(prefix + 1, sum_rows(model_, problem.fixed())),
        balances_(prefix + 1, Balance(problem, problem.fixed())) {}

  void run(const std::uint32_t* tails, std::size_t count) {
    tails_ = tails;
    count_ = count;
    tail_clients_.resize(count * tail_);
    for (std::size_t i = 0; i < count * tail_; ++i) tail_clients_[i] = problem_.free()[tails[i]];
    fill_lanes(model_, tail_clients_.data(), tail_, count, lanes_.data());
    positions_.clear();
    descend(0);
  }

  const Leaderboard& board() const { return board_; }

 private:
  // Extends the prefix, which has `depth` clients, by every client before the block's last tail.
  void descend(std::size_t depth) {
    if (depth == prefix_) return evaluate();
    const std::uint32_t first = depth == 0 ? 0 : positions_.back() + 1;
    // The rest of the prefix must find room before the last tail too.
    const auto rest = static_cast<std::uint32_t>(prefix_ - depth - 1);
    const std::uint32_t end = tails_[(count_ - 1) * tail_];
    for (std::uint32_t position = first; position + rest < end; ++position) {
      if (control_.stopped()) return;
      const std::uint32_t client = problem_.free()[position];
      if (problem_.constrained()) {
        if (balances_[depth].excess_with(client) > 0.0) continue;  // amounts are not negative: no way back
        balances_[depth + 1] = balances_[depth];
        balances_[depth + 1].add(client);
      }
      const std::int32_t* row = model_.row(client);
      const std::int32_t* from = sums_[depth].data();
      std::int32_t* to = sums_[depth + 1].data();
      for (std::size_t c = 0; c < model_.cells(); ++c) to[c] = from[c] + row[c];
      positions_.push_back(position);
      descend(depth + 1);
      positions_.pop_back();
    }
  }

  bool allowed(std::size_t lane) const {
    if (prefix_ > 0 && tails_[lane * tail_] <= positions_.back()) return false;
    if (!problem_.constrained()) return true;
    Balance balance = balances_[prefix_];
    for (std::size_t i = 0; i < tail_; ++i) balance.add(tail_clients_[lane * tail_ + i]);
    return balance.violation() == 0.0;
  }

  void evaluate() {
    bool wanted[kLanes];
    std::uint64_t evaluated = 0;
    for (std::size_t l = 0; l < count_; ++l) evaluated += wanted[l] = allowed(l);
    if (evaluated == 0) return;
    control_.evaluations.fetch_add(evaluated, std::memory_order_relaxed);

    // Screen in single precision; only a block with a lane that might enter the board is evaluated exactly.
    float screened[kLanes];
    evaluator_.screen(sums_[prefix_].data(), lanes_.data(), origin_, screened);
    const double bound = board_.threshold() + evaluator_.screening_error();
    bool any = false;
    for (std::size_t l = 0; l < count_; ++l) {
      wanted[l] = wanted[l] && screened[l] <= bound;
      any = any || wanted[l];
    }
    if (!any) return;
    double losses[kLanes];
    evaluator_.lane_losses(sums_[prefix_].data(), lanes_.data(), losses);
    for (std::size_t l = 0; l < count_; ++l) {
      if (!wanted[l] || losses[l] > board_.threshold()) continue;
      Members members = problem_.fixed();
      for (auto position : positions_) members.push_back(problem_.free()[position]);
      const auto* tail = tail_clients_.data() + l * tail_;
      members.insert(members.end(), tail, tail + tail_);
      board_.add(losses[l], std::move(members));
    }
  }

  const Problem& problem_;
  const LossModel& model_;
  Evaluator evaluator_;
  float origin_;
  std::size_t prefix_, tail_;
  Leaderboard board_;
  Control& control_;
  AlignedVector<std::int32_t> lanes_;
  std::vector<AlignedVector<std::int32_t>> sums_;
  std::vector<Balance> balances_;
  Members positions_, tail_clients_;
  const std::uint32_t* tails_ = nullptr;
  std::size_t count_ = 0;
};

// Positions of all tails in the list of free clients, in lexicographic order.
std::vector<std::uint32_t> list_tails(std::size_t free, std::size_t prefix, std::size_t tail) {
  std::vector<std::uint32_t> tails;
  const auto n = static_cast<std::uint32_t>(free);
  for (auto a = static_cast<std::uint32_t>(prefix); a < n; ++a) {
    if (tail == 1) tails.push_back(a);
    for (std::uint32_t b = a + 1; tail == 2 && b < n; ++b) tails.insert(tails.end(), {a, b});
  }
  return tails;
}

}  // namespace

std::uint64_t binomial(std::uint64_t n, std::uint64_t k) {
  if (k > n) return 0;
  k = std::min(k, n - k);
  std::uint64_t result = 1;
  for (std::uint64_t i = 1; i <= k; ++i) {
    const std::uint64_t factor = n - k + i;
    const std::uint64_t common = std::gcd(result, i), rest = i / common;
    result /= common;  // rest divides factor * (result / common), hence factor
    if (result > std::numeric_limits<std::uint64_t>::max() / (factor / rest))
      return std::numeric_limits<std::uint64_t>::max();
    result *= factor / rest;
  }
  return result;
}

EnumerationResult enumerate(const Problem& problem, std::size_t keep, std::size_t threads, Control& control) {
  const std::size_t tail = std::min<std::size_t>(problem.choices(), 2), prefix = problem.choices() - tail;
  Leaderboard board(keep);
  if (tail == 0) {  // nothing to choose
    Evaluator evaluator(problem.model());
    board.add(evaluator.loss(sum_rows(problem.model(), problem.fixed()).data()), problem.fixed());
    control.evaluations.fetch_add(1, std::memory_order_relaxed);
    return {std::move(board), true};
  }
  const auto tails = list_tails(problem.free().size(), prefix, tail);
  const std::size_t count = tails.size() / tail, blocks = (count + kLanes - 1) / kLanes;
  control.planned = problem.constrained() ? 0 : binomial(problem.free().size(), problem.choices());

  std::mutex guard;
  parallel_for(blocks, threads, [&](std::size_t task) {
    const std::size_t first = (blocks - 1 - task) * kLanes;  // the last blocks have the most prefixes: start with them
    BlockSearch search(problem, prefix, tail, keep, control);
    search.run(tails.data() + first * tail, std::min(kLanes, count - first));
    const std::lock_guard lock(guard);
    board.merge(search.board());
  });
  return {std::move(board), control.reason() == StopReason::completed};
}

}  // namespace fedsel
