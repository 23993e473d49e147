#include "quadratic_search.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "aligned.hpp"
#include "enumerate.hpp"
#include "parallel.hpp"
#include "tail_walk.hpp"

namespace fedsel {
namespace {

constexpr std::uint64_t kTailsPerBlock = 2'000;  // more would leave less to the bounds, fewer less to the vectors
constexpr std::uint64_t kUncountable = std::numeric_limits<std::uint64_t>::max();  // what binomial saturates at
constexpr std::uint64_t kCountEvery = 1024;                                        // prefixes a thread counts by itself
constexpr std::uint64_t kMostTasks = 20'000;
constexpr std::size_t kMostBounds = std::size_t{1} << 25;  // values: 256 MB

// value(W) <= threshold is the same as z'Az <= 0, where n_W^2 (value - threshold) has been written as a form:
//
//     A_ij = K_ij / 2 + (s_i n_j + s_j n_i) / 2 - threshold n_i n_j.
//
// No division is left, and a form grows by sums as members are added. Positions count free clients, in the order of
// A_jj / n_j^2, so that the clients that look best by themselves come first and what follows a prefix is worse.
class Form {
 public:
  Form(const Problem& problem, const QuadraticModel& model, double threshold) {
    const Members& fixed = problem.fixed();
    double largest = 0.0;  // part of any entry
    const auto entry = [&](std::uint32_t i, std::uint32_t j) {
      const double ni = model.records(i), nj = model.records(j);
      const double parts[] = {0.5 * model.couplings(i)[j], 0.5 * model.score(i) * nj, 0.5 * model.score(j) * ni,
                              -threshold * ni * nj};
      for (double part : parts) largest = std::max(largest, std::abs(part));
      return parts[0] + parts[1] + parts[2] + parts[3];
    };
    clients = problem.free();
    std::vector<double> alone(model.clients());
    for (auto i : clients) alone[i] = entry(i, i) / (model.records(i) * model.records(i));
    std::stable_sort(clients.begin(), clients.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return alone[a] < alone[b]; });
    size = clients.size();
    stride = padded(size);
    doubled.assign(size * stride, 0.0);
    gains.assign(size, 0.0);
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j) {
        const double value = entry(clients[i], clients[j]);
        doubled[i * stride + j] = i == j ? 0.0 : 2.0 * value;
      }
      gains[i] = entry(clients[i], clients[i]);
      for (auto f : fixed) gains[i] += 2.0 * entry(clients[i], f);
    }
    for (auto i : fixed)
      for (auto j : fixed) form += entry(i, j);
    // A form is a sum of k^2 entries of four parts, in no more than 4 k^2 additions.
    const auto terms = static_cast<double>(problem.k() * problem.k());
    slack = 32.0 * 0x1p-53 * terms * terms * largest;
  }

  Members clients;  // by position
  std::size_t size, stride;
  AlignedVector<double> doubled;  // 2 A, 0 on the diagonal
  std::vector<double> gains;      // what each adds to the fixed members alone
  double form = 0.0;              // of the fixed members
  double slack;                   // more than rounding can do to a form
};

// least(r, first, j): the sum of the r - 1 smallest A_ij over i >= first other than j. Any r members R from `first` on
// add
//
//     sum_{j in R} ( gains[j] + sum_{i in R, i != j} A_ij )  >=  sum_{j in R} ( gains[j] + least(r, first, j) ),
//
// and that is at least the sum of the r smallest values of gains[j] + least(r, first, j) (Gilmore 1962, Lawler 1963).
class Bounds {
 public:
  Bounds(const Form& form, std::size_t most) : form_(form), stride_(form.stride), most_(most) {
    values_.resize(most * (form.size + 1) * stride_);
    std::vector<std::vector<double>> smallest(form.size);
    for (std::size_t first = form.size; first-- > 0;) {
      for (std::size_t j = first; j < form.size; ++j) {
        auto& sorted = smallest[j];
        // Client `first` is new to the others; to it, all the others are.
        for (std::size_t i = j == first ? first + 1 : first; i < (j == first ? form.size : first + 1); ++i) {
          const double value = 0.5 * form.doubled[j * stride_ + i];
          sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), value), value);
          if (sorted.size() >= most) sorted.resize(most - 1);
        }
        double sum = 0.0;
        for (std::size_t r = 1; r <= most; ++r) {
          values_[index(r, first) + j] = sum;
          if (r <= sorted.size()) sum += sorted[r - 1];
        }
      }
    }
  }

  // Lower bound on what r members from `first` on add to a federation of these gains.
  double least(const double* gains, std::size_t r, std::size_t first, std::vector<double>& work) const {
    if (r == 0) return 0.0;
    const double* values = values_.data() + index(r, first);
    work.clear();
    for (std::size_t j = first; j < form_.size; ++j) work.push_back(gains[j] + values[j]);
    std::nth_element(work.begin(), work.begin() + static_cast<std::ptrdiff_t>(r) - 1, work.end());
    return std::accumulate(work.begin(), work.begin() + static_cast<std::ptrdiff_t>(r), 0.0);
  }

 private:
  std::size_t index(std::size_t r, std::size_t first) const { return ((r - 1) * (form_.size + 1) + first) * stride_; }
  const Form& form_;
  std::size_t stride_, most_;
  std::vector<double> values_;
};

std::size_t tail_size(std::size_t free, std::size_t choices) {
  std::size_t size = 1;
  while (size < std::min(choices, kMaxTail) && binomial(free, size + 1) <= kTailsPerBlock) ++size;
  return std::min(size, choices);
}

// The first few positions of a prefix: what a thread takes on at a time.
std::vector<Members> tasks_for(std::size_t free, std::size_t prefix) {
  std::size_t size = 0;
  while (size < std::min<std::size_t>(prefix, 3) && binomial(free, size + 1) <= kMostTasks) ++size;
  std::vector<Members> tasks{{}};
  for (std::size_t depth = 0; depth < size; ++depth) {
    std::vector<Members> longer;
    for (const auto& task : tasks)
      for (std::uint32_t next = task.empty() ? 0 : task.back() + 1; next < free; ++next) {
        longer.push_back(task);
        longer.back().push_back(next);
      }
    tasks = std::move(longer);
  }
  return tasks;
}

// What tells the threads of a search to end, besides the control.
struct Halt {
  std::uint64_t most_prefixes;
  std::atomic<std::uint64_t> prefixes{0};
  std::atomic<bool> told{false};

  bool now() const {
    return told.load(std::memory_order_relaxed) || prefixes.load(std::memory_order_relaxed) > most_prefixes;
  }
};

// One thread's part: extends prefixes while bounds allow, collects those that end at the same position into blocks of
// kLanes, and walks over the tails behind a block.
class Worker {
 public:
  Worker(const Problem& problem, const QuadraticModel& model, const Form& form, const Bounds& bounds, double threshold,
         const QuadraticSearch::Found& found, std::size_t number, bool reports, Control& control, Halt& halt)
      : problem_(problem),
        model_(model),
        form_(form),
        bounds_(bounds),
        threshold_(threshold),
        found_(found),
        number_(number),
        reports_(reports),
        control_(control),
        halt_(halt),
        tail_(tail_size(form.size, problem.choices())),
        prefix_(problem.choices() - tail_),
        countable_(binomial(form.size, problem.choices()) != kUncountable),
        walk_(tail_walk(problem.model().level())),
        forms_(prefix_ + 1, form.form),
        gains_(prefix_ + 1, form.gains),
        balances_(prefix_ + 1, Balance(problem, problem.fixed())),
        blocks_(form.size + 1),
        lane_gains_(form.stride * kLanes, 0.0),
        scratch_(kMaxTail * (form.stride + kLanes)) {}

  // All federations whose prefix starts like this.
  void run(const Members& start) {
    positions_.clear();
    const std::size_t after = start.empty() ? form_.size : form_.size - 1 - start.back();
    const std::size_t left = problem_.choices() - start.size();
    for (auto position : start)
      if (!push(position)) return skip(after, left);
    extend();
  }

  // Walks over what is left in the blocks.
  void finish() {
    for (std::size_t begin = 0; begin <= form_.size; ++begin) flush(begin);
    halt_.prefixes.fetch_add(coverage_.prefixes % kCountEvery, std::memory_order_relaxed);
  }

  const QuadraticCoverage& coverage() const { return coverage_; }

 private:
  // Prefixes that end just before one position.
  struct Block {
    std::size_t count = 0;
    double forms[kLanes];
    Members positions[kLanes];
  };

  // Adds a position to the prefix, unless a bound or a constraint says that nothing behind it is wanted.
  bool push(std::uint32_t position) {
    const std::size_t depth = positions_.size(), left = problem_.choices() - depth - 1;
    if (++coverage_.prefixes % kCountEvery == 0) halt_.prefixes.fetch_add(kCountEvery, std::memory_order_relaxed);
    if (form_.size - 1 - position < left) return false;
    if (problem_.constrained()) {
      if (balances_[depth].excess_with(form_.clients[position]) > 0.0) return false;
      balances_[depth + 1] = balances_[depth];
      balances_[depth + 1].add(form_.clients[position]);
    }
    forms_[depth + 1] = forms_[depth] + gains_[depth][position];
    const double* row = form_.doubled.data() + position * form_.stride;
    for (std::size_t j = position + 1; j < form_.size; ++j) gains_[depth + 1][j] = gains_[depth][j] + row[j];
    const double least = bounds_.least(gains_[depth + 1].data(), left, position + 1, work_);
    if (forms_[depth + 1] + least > form_.slack) return false;
    positions_.push_back(position);
    return true;
  }

  bool stopped() { return halt_.now() || control_.stopped(); }

  void extend() {
    if (stopped()) return;
    if (positions_.size() == prefix_) return set_aside();
    const std::size_t left = problem_.choices() - positions_.size() - 1;
    for (std::uint32_t next = positions_.empty() ? 0 : positions_.back() + 1; next < form_.size; ++next) {
      if (!push(next)) {
        skip(form_.size - 1 - next, left);
        continue;
      }
      extend();
      positions_.pop_back();
    }
  }

  void skip(std::size_t after, std::size_t left) { count(binomial(after, left), coverage_.bounded); }

  void count(std::uint64_t federations, std::uint64_t& to) {
    if (!countable_) return;
    to += federations;
    if (reports_) control_.evaluations.fetch_add(federations, std::memory_order_relaxed);
  }

  void set_aside() {
    const std::size_t begin = positions_.empty() ? 0 : positions_.back() + 1;
    Block& block = blocks_[begin];
    block.forms[block.count] = forms_[prefix_];
    block.positions[block.count] = positions_;
    if (++block.count == kLanes) flush(begin);
  }

  void flush(std::size_t begin) {
    Block& block = blocks_[begin];
    if (block.count == 0 || stopped()) return;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (lane >= block.count) {
        block.forms[lane] = std::numeric_limits<double>::infinity();
        continue;
      }
      for (std::size_t j = begin; j < form_.size; ++j) lane_gains_[j * kLanes + lane] = form_.gains[j];
      for (auto position : block.positions[lane]) {
        const double* row = form_.doubled.data() + position * form_.stride;
        for (std::size_t j = begin; j < form_.size; ++j) lane_gains_[j * kLanes + lane] += row[j];
      }
    }
    block_ = &block;
    walk_(
        {form_.doubled.data(), form_.stride, begin, form_.size, tail_, block.forms, lane_gains_.data(), form_.slack,
         scratch_.data(),
         [](void* self, const std::uint32_t* tail, std::size_t lane) { static_cast<Worker*>(self)->check(tail, lane); },
         this});
    count(block.count * binomial(form_.size - begin, tail_), coverage_.enumerated);
    block.count = 0;
  }

  // The form of this federation is low: does it keep the constraints, and is its value low as well?
  void check(const std::uint32_t* tail, std::size_t lane) {
    Members members = problem_.fixed();
    for (auto position : block_->positions[lane]) members.push_back(form_.clients[position]);
    for (std::size_t i = 0; i < tail_; ++i) members.push_back(form_.clients[tail[i]]);
    std::sort(members.begin(), members.end());
    if (problem_.constrained() && Balance(problem_, members).violation() > 0.0) return;
    const double value = model_.loss(members);
    if (value <= threshold_ && !found_(members, value, number_)) halt_.told.store(true, std::memory_order_relaxed);
  }

  const Problem& problem_;
  const QuadraticModel& model_;
  const Form& form_;
  const Bounds& bounds_;
  const double threshold_;
  const QuadraticSearch::Found& found_;
  const std::size_t number_;
  const bool reports_;
  Control& control_;
  Halt& halt_;
  const std::size_t tail_, prefix_;
  const bool countable_;
  const TailWalk walk_;
  Members positions_;                       // of the prefix
  std::vector<double> forms_;               // of the prefix, by its length
  std::vector<std::vector<double>> gains_;  // the same
  std::vector<Balance> balances_;           // the same
  std::vector<double> work_;
  std::vector<Block> blocks_;  // by the position after the prefix
  const Block* block_ = nullptr;
  AlignedVector<double> lane_gains_, scratch_;
  QuadraticCoverage coverage_;
};

}  // namespace

QuadraticSearch::QuadraticSearch(const Problem& problem, const QuadraticModel& model, std::size_t threads, bool reports)
    : problem_(problem), model_(model), threads_(std::max<std::size_t>(threads, 1)), reports_(reports) {}

bool QuadraticSearch::fits(const Problem& problem) {
  const std::size_t free = problem.free().size();
  return free <= QuadraticModel::kMaxClients && problem.choices() * (free + 1) * padded(free) <= kMostBounds;
}

QuadraticCoverage QuadraticSearch::run(double threshold, const Found& found, std::uint64_t most_prefixes,
                                       Control& control) const {
  const std::size_t choices = problem_.choices();
  QuadraticCoverage coverage;
  if (choices == 0) {
    coverage.enumerated = 1;
    const double value = model_.loss(problem_.fixed());
    coverage.complete = value > threshold || found(problem_.fixed(), value, 0);
    return coverage;
  }
  const Form form(problem_, model_, threshold);
  const Bounds bounds(form, choices);
  const auto tasks = tasks_for(form.size, choices - tail_size(form.size, choices));
  Halt halt{most_prefixes};
  std::vector<std::unique_ptr<Worker>> workers(threads_);
  parallel_for(tasks.size(), threads_, [&](std::size_t task, std::size_t number) {
    if (halt.now() || control.stopped()) return;
    auto& worker = workers[number];
    if (!worker)
      worker =
          std::make_unique<Worker>(problem_, model_, form, bounds, threshold, found, number, reports_, control, halt);
    worker->run(tasks[task]);
  });
  parallel_for(threads_, threads_, [&](std::size_t number, std::size_t) {
    if (workers[number]) workers[number]->finish();
  });
  for (const auto& worker : workers)
    if (worker) {
      coverage.enumerated += worker->coverage().enumerated;
      coverage.bounded += worker->coverage().bounded;
      coverage.prefixes += worker->coverage().prefixes;
    }
  coverage.complete = !halt.now() && control.reason() == StopReason::completed;
  return coverage;
}

}  // namespace fedsel
