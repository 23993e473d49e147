#include "certify.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <queue>
#include <stdexcept>
#include <utility>

#include "enumerate.hpp"
#include "parallel.hpp"
#include "quadratic.hpp"
#include "quadratic_search.hpp"

namespace fedsel {
namespace {

constexpr double kRounding = 1e-10;  // more than it can do, relative to the weights, should the model be exact
constexpr int kMostPasses = 12, kMostWidenings = 6;
constexpr std::size_t kChunk = 100;  // random federations a task

using Error = std::pair<double, double>;  // value under the model, |model - loss|

// Errors at the `capacity` lowest values of the model.
class LowestErrors {
 public:
  explicit LowestErrors(std::size_t capacity) : capacity_(capacity) {}

  void add(Error error) {
    if (heap_.size() == capacity_ && !(error < heap_.top())) return;
    heap_.push(error);
    if (heap_.size() > capacity_) heap_.pop();
  }

  void merge(LowestErrors& other) {
    for (; !other.heap_.empty(); other.heap_.pop()) add(other.heap_.top());
  }

  std::size_t size() const { return heap_.size(); }

  double largest() {
    double result = 0.0;
    for (; !heap_.empty(); heap_.pop()) result = std::max(result, heap_.top().second);
    return result;
  }

 private:
  std::size_t capacity_;
  std::priority_queue<Error> heap_;
};

// What one thread collects in a pass.
struct Part {
  Evaluator evaluator;
  Leaderboard board;
  LowestErrors errors;
};

class Certification {
 public:
  Certification(const Problem& problem, const QuadraticModel& model, const CertifyOptions& options, Control& control)
      : problem_(problem), model_(model), options_(options), control_(control), result_(options.keep) {
    for (double weight : problem.model().table_weights()) least_width_ += kRounding * std::abs(weight);
  }

  CertifyResult run() {
    Evaluator evaluator(problem_.model());
    const double known = evaluator.loss(sum_rows(problem_.model(), options_.known).data());
    result_.board.add(known, options_.known);
    result_.random_error = std::abs(model_.loss(options_.known) - known);
    double best = known, width = 0.0;
    const std::uint64_t total = binomial(problem_.free().size(), problem_.choices());
    measure_random();
    width = std::max(least_width_, 2.0 * result_.random_error);
    int widenings = 0;
    for (int pass = 0; pass < kMostPasses && !control_.stopped(); ++pass) {
      // What the random federations say of how many are inside the band, before looking at all.
      const auto inside = static_cast<double>(std::count_if(random_values_.begin(), random_values_.end(),
                                                            [&](double value) { return value <= best + width; }));
      if (inside * static_cast<double>(total) >
          10.0 * static_cast<double>(options_.most) * static_cast<double>(random_values_.size())) {
        result_.outcome = CertifyOutcome::too_wide;
        break;
      }
      if (!enumerate_below(best + width)) break;
      best = std::min(best, result_.board.entries()[0].loss);
      result_.band = std::max(least_width_, 2.0 * std::max(result_.random_error, result_.best_error));
      const bool enough =
          result_.compared >= options_.sample || widenings == kMostWidenings || result_.rechecked == total;
      if (enough && threshold_ >= best + result_.band) {
        result_.outcome = CertifyOutcome::certified;
        break;
      }
      width = enough ? result_.band : std::max(result_.band, 1.6 * width);
      widenings += !enough;
      if (pass + 1 == kMostPasses) result_.outcome = CertifyOutcome::too_wide;
    }
    return std::move(result_);
  }

 private:
  // The error of the model, and its values, at random federations.
  void measure_random() {
    const std::size_t count = options_.sample;
    std::vector<double> values(count), errors(count, 0.0);
    parallel_for((count + kChunk - 1) / kChunk, options_.threads, [&](std::size_t chunk, std::size_t) {
      if (control_.stopped()) return;
      Evaluator evaluator(problem_.model());
      Philox random(options_.seed, ~std::uint64_t{1} - chunk);
      for (std::size_t i = chunk * kChunk; i < std::min(count, (chunk + 1) * kChunk); ++i) {
        Members members = problem_.random_start(random);
        std::sort(members.begin(), members.end());
        values[i] = model_.loss(members);
        errors[i] = std::abs(values[i] - evaluator.loss(sum_rows(problem_.model(), members).data()));
      }
    });
    if (control_.stopped()) return;
    random_values_ = std::move(values);
    for (double error : errors) result_.random_error = std::max(result_.random_error, error);
  }

  // Evaluates exactly every federation whose model value is at most `threshold`; false where it did not finish.
  bool enumerate_below(double threshold) {
    threshold_ = threshold;
    std::vector<Part> parts;
    for (std::size_t i = 0; i < std::max<std::size_t>(options_.threads, 1); ++i)
      parts.push_back({Evaluator(problem_.model()), Leaderboard(options_.keep), LowestErrors(options_.sample)});
    std::atomic<std::uint64_t> rechecked{0};
    const std::uint64_t total = binomial(problem_.free().size(), problem_.choices());
    control_.evaluations = 0;
    control_.planned = total == std::numeric_limits<std::uint64_t>::max() ? 0 : total;
    const auto coverage = QuadraticSearch(problem_, model_, options_.threads)
                              .run(
                                  threshold,
                                  [&](const Members& members, double value, std::size_t worker) {
                                    if (rechecked.fetch_add(1, std::memory_order_relaxed) >= options_.most)
                                      return false;
                                    Part& part = parts[worker];
                                    const double loss = part.evaluator.loss(sum_rows(problem_.model(), members).data());
                                    part.errors.add({value, std::abs(value - loss)});
                                    part.board.add(loss, members);
                                    return true;
                                  },
                                  options_.most_prefixes, control_);
    result_.enumerated = coverage.enumerated;
    result_.bounded = coverage.bounded;
    result_.prefixes = coverage.prefixes;
    result_.rechecked = std::min(rechecked.load(), options_.most);
    if (!coverage.complete) {
      // What was seen by then depends on the threads: only what was known before is kept.
      if (control_.reason() != StopReason::completed) return false;
      result_.outcome = rechecked > options_.most ? CertifyOutcome::too_wide : CertifyOutcome::too_long;
      return false;
    }
    LowestErrors errors(options_.sample);
    for (auto& part : parts) {
      result_.board.merge(part.board);
      errors.merge(part.errors);
    }
    result_.compared = errors.size();
    result_.best_error = errors.largest();
    return true;
  }

  const Problem& problem_;
  const QuadraticModel& model_;
  const CertifyOptions& options_;
  Control& control_;
  CertifyResult result_;
  std::vector<double> random_values_;
  double threshold_ = 0.0, least_width_ = 0.0;
};

}  // namespace

CertifyResult certify(const Problem& problem, const CertifyOptions& options, Control& control) {
  if (!QuadraticSearch::fits(problem)) throw std::invalid_argument("the pool is too large for a model certificate");
  Members reference = problem.fixed();
  reference.insert(reference.end(), problem.free().begin(), problem.free().end());
  const QuadraticModel model(problem.model(), reference, options.threads, control);
  if (!model.ready()) {
    CertifyResult result(options.keep);
    Evaluator evaluator(problem.model());
    result.board.add(evaluator.loss(sum_rows(problem.model(), options.known).data()), options.known);
    return result;
  }
  return Certification(problem, model, options, control).run();
}

}  // namespace fedsel
