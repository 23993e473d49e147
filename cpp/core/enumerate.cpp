#include "enumerate.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>

#include "lane_blocks.hpp"
#include "parallel.hpp"

namespace fedsel {
namespace {

// A federation is a prefix of k - tail clients followed by a tail of one or two larger ones. Tails are listed in
// lexicographic order and cut into blocks of kLanes, whose transposed sums stay in the L2 cache while all prefixes that
// end before the block's last tail run over it. Tails in a block that start inside the prefix are evaluated and
// ignored: they exist only where the first tail client changes within a block, so nearly every lane does useful work.
class BlockSearch {
 public:
  BlockSearch(const LossModel& model, std::size_t prefix, std::size_t tail, std::size_t keep, Control& control)
      : model_(model),
        evaluator_(model),
        prefix_(prefix),
        tail_(tail),
        board_(keep),
        control_(control),
        lanes_(model.cells() * kLanes),
        sums_(prefix + 1, AlignedVector<std::int32_t>(model.stride(), 0)) {}

  void run(const std::uint32_t* tails, std::size_t count) {
    tails_ = tails;
    count_ = count;
    fill_lanes(model_, tails, tail_, count, lanes_.data());
    members_.clear();
    descend(0);
  }

  const Leaderboard& board() const { return board_; }

 private:
  // Extends the prefix, which has `depth` clients, by every client below the block's last tail.
  void descend(std::size_t depth) {
    if (depth == prefix_) return evaluate();
    const std::uint32_t first = depth == 0 ? 0 : members_.back() + 1;
    const std::uint32_t end = tails_[(count_ - 1) * tail_];
    for (std::uint32_t client = first; client < end; ++client) {
      if (control_.stopped()) return;
      const std::int32_t* row = model_.row(client);
      const std::int32_t* from = sums_[depth].data();
      std::int32_t* to = sums_[depth + 1].data();
      for (std::size_t c = 0; c < model_.cells(); ++c) to[c] = from[c] + row[c];
      members_.push_back(client);
      descend(depth + 1);
      members_.pop_back();
    }
  }

  void evaluate() {
    double losses[kLanes];
    evaluator_.lane_losses(sums_[prefix_].data(), lanes_.data(), losses);
    std::uint64_t evaluated = 0;
    for (std::size_t l = 0; l < count_; ++l) {
      const std::uint32_t* tail = tails_ + l * tail_;
      if (prefix_ > 0 && tail[0] <= members_.back()) continue;
      ++evaluated;
      if (losses[l] > board_.threshold()) continue;
      Members members = members_;
      members.insert(members.end(), tail, tail + tail_);
      board_.add(losses[l], std::move(members));
    }
    control_.evaluations.fetch_add(evaluated, std::memory_order_relaxed);
  }

  const LossModel& model_;
  Evaluator evaluator_;
  std::size_t prefix_, tail_;
  Leaderboard board_;
  Control& control_;
  AlignedVector<std::int32_t> lanes_;
  std::vector<AlignedVector<std::int32_t>> sums_;
  Members members_;
  const std::uint32_t* tails_ = nullptr;
  std::size_t count_ = 0;
};

std::vector<std::uint32_t> list_tails(std::size_t clients, std::size_t prefix, std::size_t tail) {
  std::vector<std::uint32_t> tails;
  const auto n = static_cast<std::uint32_t>(clients);
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

EnumerationResult enumerate(const LossModel& model, std::size_t k, std::size_t keep, std::size_t threads,
                            Control& control) {
  const std::size_t tail = std::min<std::size_t>(k, 2), prefix = k - tail;
  const auto tails = list_tails(model.clients(), prefix, tail);
  const std::size_t count = tails.size() / tail, blocks = (count + kLanes - 1) / kLanes;
  control.planned = binomial(model.clients(), k);

  Leaderboard board(keep);
  std::mutex guard;
  parallel_for(blocks, threads, [&](std::size_t task) {
    const std::size_t first = (blocks - 1 - task) * kLanes;  // the last blocks have the most prefixes: start with them
    BlockSearch search(model, prefix, tail, keep, control);
    search.run(tails.data() + first * tail, std::min(kLanes, count - first));
    const std::lock_guard lock(guard);
    board.merge(search.board());
  });
  return {std::move(board), control.reason() == StopReason::completed};
}

}  // namespace fedsel
