#include "enumerate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "lane_blocks.hpp"
#include "parallel.hpp"

namespace fedsel {
namespace {

// What every federation of a group has in common: members, their sums, records and constraints.
struct Base {
  Members members;
  AlignedVector<std::int32_t> sums;
  double records;
  Balance balance;

  Base(const Problem& problem, const Members& who, const std::vector<double>& records_of)
      : members(who), sums(sum_rows(problem.model(), who)), records(0.0), balance(problem, who) {
    for (auto client : who) records += records_of[client];
  }
};

struct Scope {
  const Problem& problem;
  const Members& free;
  std::size_t prefix, tail;
  std::vector<double> records;
  std::vector<Base> bases;
};

// A federation is a base, a prefix of free clients, and a tail of one or two later ones (later in the list of free
// clients: positions there are what the code below counts in). Tails are listed in lexicographic order and cut into
// blocks of kLanes, whose transposed sums stay in the L2 cache while all bases and all prefixes that end before the
// block's last tail run over it. Tails in a block that start inside the prefix are evaluated and ignored: they exist
// only where the first tail client changes within a block, so nearly every lane does useful work.
class BlockSearch {
 public:
  BlockSearch(const Scope& scope, const Leaderboard& board, Control& control)
      : scope_(scope),
        model_(scope.problem.model()),
        evaluator_(model_),
        board_(board),
        control_(control),
        lanes_(model_.cells() * kLanes),
        sums_(scope.prefix + 1, AlignedVector<std::int32_t>(model_.stride(), 0)),
        records_(scope.prefix + 1, 0.0),
        balances_(scope.prefix + 1, scope.bases[0].balance) {}

  void run(const std::uint32_t* tails, std::size_t count) {
    tails_ = tails;
    count_ = count;
    tail_clients_.resize(count * scope_.tail);
    for (std::size_t i = 0; i < count * scope_.tail; ++i) tail_clients_[i] = scope_.free[tails[i]];
    tail_records_ = 0.0;
    for (auto client : tail_clients_) tail_records_ += scope_.records[client] / static_cast<double>(count);
    fill_lanes(model_, tail_clients_.data(), scope_.tail, count, lanes_.data());
    positions_.clear();
    for (const auto& base : scope_.bases) {
      base_ = &base;
      records_[0] = base.records;
      balances_[0] = base.balance;
      descend(0);
    }
  }

  const Leaderboard& board() const { return board_; }

 private:
  const std::int32_t* sums(std::size_t depth) const { return depth == 0 ? base_->sums.data() : sums_[depth].data(); }

  // Extends the prefix, which has `depth` clients, by every client before the block's last tail.
  void descend(std::size_t depth) {
    if (depth == scope_.prefix) return evaluate();
    const std::uint32_t first = depth == 0 ? 0 : positions_.back() + 1;
    // The rest of the prefix must find room before the last tail too.
    const auto rest = static_cast<std::uint32_t>(scope_.prefix - depth - 1);
    const std::uint32_t end = tails_[(count_ - 1) * scope_.tail];
    for (std::uint32_t position = first; position + rest < end; ++position) {
      if (control_.stopped()) return;
      const std::uint32_t client = scope_.free[position];
      if (scope_.problem.constrained()) {
        if (balances_[depth].excess_with(client) > 0.0) continue;  // amounts are not negative: no way back
        balances_[depth + 1] = balances_[depth];
        balances_[depth + 1].add(client);
      }
      const std::int32_t* row = model_.row(client);
      const std::int32_t* from = sums(depth);
      std::int32_t* to = sums_[depth + 1].data();
      for (std::size_t c = 0; c < model_.cells(); ++c) to[c] = from[c] + row[c];
      records_[depth + 1] = records_[depth] + scope_.records[client];
      positions_.push_back(position);
      descend(depth + 1);
      positions_.pop_back();
    }
  }

  bool allowed(std::size_t lane) const {
    if (scope_.prefix > 0 && tails_[lane * scope_.tail] <= positions_.back()) return false;
    if (!scope_.problem.constrained()) return true;
    Balance balance = balances_[scope_.prefix];
    for (std::size_t i = 0; i < scope_.tail; ++i) balance.add(tail_clients_[lane * scope_.tail + i]);
    return balance.violation() == 0.0;
  }

  void evaluate() {
    if (control_.stopped()) return;
    bool wanted[kLanes];
    std::uint64_t evaluated = 0;
    for (std::size_t l = 0; l < count_; ++l) evaluated += wanted[l] = allowed(l);
    if (evaluated == 0) return;
    control_.evaluations.fetch_add(evaluated, std::memory_order_relaxed);

    // Screen in single precision; only a block with a lane that might enter the board is evaluated exactly.
    float screened[kLanes];
    const auto origin = static_cast<float>(std::log2(records_[scope_.prefix] + tail_records_));  // near all the totals
    evaluator_.screen(sums(scope_.prefix), lanes_.data(), origin, screened);
    const double bound = board_.threshold() + model_.screening_error();
    bool any = false;
    for (std::size_t l = 0; l < count_; ++l) {
      wanted[l] = wanted[l] && !(screened[l] > bound);
      any = any || wanted[l];
    }
    if (!any) return;
    double losses[kLanes];
    evaluator_.lane_losses(sums(scope_.prefix), lanes_.data(), losses);
    for (std::size_t l = 0; l < count_; ++l) {
      if (!wanted[l] || losses[l] > board_.threshold()) continue;
      Members members = base_->members;
      for (auto position : positions_) members.push_back(scope_.free[position]);
      const auto* tail = tail_clients_.data() + l * scope_.tail;
      members.insert(members.end(), tail, tail + scope_.tail);
      board_.add(losses[l], std::move(members));
    }
  }

  const Scope& scope_;
  const LossModel& model_;
  Evaluator evaluator_;
  Leaderboard board_;
  Control& control_;
  AlignedVector<std::int32_t> lanes_;
  const Base* base_ = nullptr;
  // By the length of the prefix; what has length 0 is the base's.
  std::vector<AlignedVector<std::int32_t>> sums_;
  std::vector<double> records_;
  std::vector<Balance> balances_;
  Members positions_, tail_clients_;
  const std::uint32_t* tails_ = nullptr;
  std::size_t count_ = 0;
  double tail_records_ = 0.0;
};

// Tails in lexicographic order, by rank: positions in the list of free clients, from `first` on.
class Tails {
 public:
  Tails(std::size_t free, std::size_t first, std::size_t tail) : first_(first), size_(free - first), tail_(tail) {}

  std::uint64_t count() const { return tail_ == 1 ? size_ : size_ * (size_ - 1) / 2; }

  // Writes `number` tails from the given rank on.
  void write(std::uint64_t rank, std::size_t number, std::uint32_t* out) const {
    if (tail_ == 1) {
      for (std::size_t i = 0; i < number; ++i) out[i] = static_cast<std::uint32_t>(first_ + rank + i);
      return;
    }
    // before(a) pairs start below a; the root of before(a) = rank, corrected for rounding, is the first of the pair.
    const double m = 2.0 * static_cast<double>(size_) - 1.0;
    auto a = static_cast<std::uint64_t>(std::max(0.0, (m - std::sqrt(m * m - 8.0 * static_cast<double>(rank))) / 2.0));
    while (a > 0 && before(a) > rank) --a;
    while (before(a + 1) <= rank) ++a;
    std::uint64_t b = a + 1 + (rank - before(a));
    for (std::size_t i = 0; i < number; ++i) {
      *out++ = static_cast<std::uint32_t>(first_ + a);
      *out++ = static_cast<std::uint32_t>(first_ + b);
      if (++b == size_) b = ++a + 1;
    }
  }

 private:
  std::uint64_t before(std::uint64_t a) const { return a * (2 * size_ - a - 1) / 2; }
  std::uint64_t first_, size_;
  std::size_t tail_;
};

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

bool enumerate_completions(const Problem& problem, const std::vector<Members>& bases, const Members& free,
                           std::size_t choices, std::size_t threads, Control& control, Leaderboard& board,
                           BlockRange range) {
  if (choices == 0) {
    if (range.first > 0) return true;
    Evaluator evaluator(problem.model());
    for (const auto& base : bases) board.add(evaluator.loss(sum_rows(problem.model(), base).data()), base);
    control.evaluations.fetch_add(bases.size(), std::memory_order_relaxed);
    return true;
  }
  const std::size_t tail = std::min<std::size_t>(choices, 2);
  Scope scope{problem, free, choices - tail, tail, problem.model().records(), {}};
  for (const auto& base : bases) scope.bases.emplace_back(problem, base, scope.records);
  const Tails tails(free.size(), scope.prefix, tail);
  const std::uint64_t count = tails.count(), blocks = (count + kLanes - 1) / kLanes;
  std::vector<std::unique_ptr<BlockSearch>> workers(std::max<std::size_t>(threads, 1));
  const std::uint64_t begin = std::min(range.first, blocks), end = std::min(range.last, blocks);
  parallel_for(end - begin, threads, [&](std::size_t task, std::size_t worker) {
    if (control.stopped()) return;
    auto& search = workers[worker];
    if (!search) search = std::make_unique<BlockSearch>(scope, board, control);
    const std::uint64_t first =
        (blocks - 1 - begin - task) * kLanes;  // the last blocks have the most prefixes: they go first
    const std::size_t number = std::min<std::uint64_t>(kLanes, count - first);
    std::uint32_t block[2 * kLanes];
    tails.write(first, number, block);
    search->run(block, number);
  });
  for (const auto& search : workers)
    if (search) board.merge(search->board());
  return control.reason() == StopReason::completed;
}

std::uint64_t enumeration_blocks(const Problem& problem) {
  const std::size_t choices = problem.choices(), tail = std::min<std::size_t>(choices, 2);
  if (choices == 0) return 1;
  return (Tails(problem.free().size(), choices - tail, tail).count() + kLanes - 1) / kLanes;
}

EnumerationResult enumerate(const Problem& problem, std::size_t keep, std::size_t threads, Control& control,
                            BlockRange range, const std::vector<Candidate>& known) {
  Leaderboard board(keep);
  for (const auto& candidate : known) board.add(candidate.loss, candidate.members);
  if (known.empty()) {  // so that there is a result however soon the search is stopped
    Evaluator evaluator(problem.model());
    board.add(evaluator.loss(sum_rows(problem.model(), problem.any()).data()), problem.any());
  }
  control.planned = problem.constrained() ? 0 : binomial(problem.free().size(), problem.choices());
  const bool complete = enumerate_completions(problem, {problem.fixed()}, problem.free(), problem.choices(), threads,
                                              control, board, range);
  return {std::move(board), complete};
}

}  // namespace fedsel
