#include "branch.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "enumerate.hpp"
#include "minorant.hpp"
#include "parallel.hpp"
#include "quadratic_search.hpp"

namespace fedsel {
namespace {

struct Node {
  Members fixed, free;
};

// What one subproblem came to.
struct Outcome {
  bool done = false;
  std::uint32_t split = 0;
  std::uint64_t evaluated = 0;
  Leaderboard board;

  explicit Outcome(std::size_t keep) : board(keep) {}
};

class Search {
 public:
  Search(const Problem& problem, const BranchOptions& options, Control& control)
      : problem_(problem), options_(options), control_(control), result_(options.keep) {}

  BranchResult run() {
    Evaluator evaluator(problem_.model());
    result_.board.add(evaluator.loss(sum_rows(problem_.model(), options_.known).data()), options_.known);
    result_.applies = Minorant::applies(problem_) && QuadraticSearch::fits(problem_);
    if (!result_.applies) return std::move(result_);
    leaves_ = {{problem_.fixed(), problem_.free()}};
    for (double gap : options_.gaps) {
      const double threshold = best().loss - gap;
      if (!close(threshold)) break;
      // Whatever is below the threshold has been evaluated by now.
      result_.bound = std::min(threshold, best().loss);
      result_.optimal = result_.bound == best().loss;
      if (result_.optimal) break;
    }
    return std::move(result_);
  }

 private:
  const Candidate& best() const { return result_.board.entries()[0]; }

  // Evaluates every federation whose bound is at most the threshold; false where it did not finish. What was split for
  // one threshold stays split for the next, which is higher.
  bool close(double threshold) {
    std::vector<Node> open = std::move(leaves_);
    leaves_.clear();
    while (!open.empty()) {
      if (result_.nodes + open.size() > options_.most_nodes || control_.stopped()) return false;
      result_.nodes += open.size();
      const Members likely = best().members;
      std::vector<std::optional<Outcome>> outcomes(open.size());
      parallel_for(open.size(), options_.threads, [&](std::size_t i, std::size_t) {
        if (!control_.stopped()) outcomes[i] = bound(open[i], likely, threshold);
      });
      std::vector<Node> next;
      for (std::size_t i = 0; i < open.size(); ++i) {
        if (!outcomes[i]) return false;
        result_.evaluated += outcomes[i]->evaluated;
        control_.evaluations = result_.evaluated;
        result_.board.merge(outcomes[i]->board);
        if (outcomes[i]->done)
          leaves_.push_back(std::move(open[i]));
        else
          split(open[i], outcomes[i]->split, next);
      }
      if (control_.reason() != StopReason::completed) return false;
      open = std::move(next);
    }
    return true;
  }

  Outcome bound(const Node& node, const Members& likely, double threshold) {
    Outcome outcome(options_.keep);
    const Problem part = problem_.restricted(node.fixed, node.free);
    const Minorant minorant(part, likely);
    Evaluator evaluator(part.model());
    const auto coverage = QuadraticSearch(part, minorant.model(), 1, false)
                              .run(
                                  threshold + minorant.allowance(),
                                  [&](const Members& members, double, std::size_t) {
                                    if (++outcome.evaluated > options_.most_evaluated) return false;
                                    outcome.board.add(evaluator.loss(sum_rows(part.model(), members).data()), members);
                                    return true;
                                  },
                                  options_.most_prefixes, control_);
    outcome.done = coverage.complete;
    outcome.split = minorant.farthest();
    return outcome;
  }

  void split(const Node& node, std::uint32_t client, std::vector<Node>& to) const {
    Node in{node.fixed, {}}, out{node.fixed, {}};
    for (auto other : node.free)
      if (other != client) in.free.push_back(other);
    out.free = in.free;
    in.fixed.push_back(client);
    if (in.fixed.size() <= problem_.k()) to.push_back(std::move(in));
    if (out.fixed.size() + out.free.size() >= problem_.k()) to.push_back(std::move(out));
  }

  const Problem& problem_;
  const BranchOptions& options_;
  Control& control_;
  BranchResult result_;
  std::vector<Node> leaves_;
};

}  // namespace

BranchResult branch(const Problem& problem, const BranchOptions& options, Control& control) {
  return Search(problem, options, control).run();
}

}  // namespace fedsel
