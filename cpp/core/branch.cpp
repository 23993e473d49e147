#include "branch.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "minorant.hpp"
#include "parallel.hpp"
#include "quadratic_search.hpp"

namespace fedsel {
namespace {

// What one subproblem came to.
struct Outcome {
  bool closed = false;
  std::uint32_t split = 0;
  std::uint64_t evaluated = 0;
  Leaderboard board;

  explicit Outcome(std::size_t keep) : board(keep) {}
};

Outcome bound(const Problem& problem, const BranchOptions& options, const BranchNode& node, const Members& likely,
              double threshold, Control& control) {
  Outcome outcome(options.keep);
  const Problem part = problem.restricted(node.fixed, node.free);
  const Minorant minorant(part, likely);
  Evaluator evaluator(part.model());
  const auto coverage = QuadraticSearch(part, minorant.model(), 1, false)
                            .run(
                                threshold + minorant.allowance(),
                                [&](const Members& members, double, std::size_t) {
                                  if (++outcome.evaluated > options.most_evaluated) return false;
                                  outcome.board.add(evaluator.loss(sum_rows(part.model(), members).data()), members);
                                  return true;
                                },
                                options.most_prefixes, control);
  outcome.closed = coverage.complete;
  outcome.split = minorant.farthest();
  return outcome;
}

void split(const BranchNode& node, std::uint32_t client, std::size_t k, std::vector<BranchNode>& to) {
  BranchNode in{node.fixed, {}}, out{node.fixed, {}};
  for (auto other : node.free)
    if (other != client) in.free.push_back(other);
  out.free = in.free;
  in.fixed.push_back(client);
  if (in.fixed.size() <= k) to.push_back(std::move(in));
  if (out.fixed.size() + out.free.size() >= k) to.push_back(std::move(out));
}

// Tries the next gap. What was split for the last one stays split, since the threshold is higher.
void begin_gap(const BranchOptions& options, BranchState& state) {
  if (state.optimal || state.gap == options.gaps.size()) {
    state.finished = true;
    return;
  }
  state.threshold = state.board.entries()[0].loss - options.gaps[state.gap];
  state.next = std::move(state.closed);
  state.closed.clear();
}

// Opens the next level, or ends the gap where there is none: whatever is below its threshold has been evaluated.
void begin_level(const BranchOptions& options, BranchState& state) {
  while (state.next.empty() && !state.finished) {
    const double best = state.board.entries()[0].loss;
    state.bound = std::min(state.threshold, best);
    state.optimal = state.bound == best;
    ++state.gap;
    begin_gap(options, state);
  }
  if (state.finished) return;
  if (state.nodes + state.next.size() > options.most_nodes) {
    state.finished = true;
    return;
  }
  state.open = std::move(state.next);
  state.next.clear();
  state.nodes += state.open.size();
  state.likely = state.board.entries()[0].members;
}

}  // namespace

BranchState begin_branch(const Problem& problem, const BranchOptions& options) {
  BranchState state(options.keep);
  Evaluator evaluator(problem.model());
  state.board.add(evaluator.loss(sum_rows(problem.model(), options.known).data()), options.known);
  state.applies = Minorant::applies(problem) && QuadraticSearch::fits(problem);
  state.finished = !state.applies;
  if (state.finished) return state;
  state.closed = {{problem.fixed(), problem.free()}};
  begin_gap(options, state);
  if (!state.finished) begin_level(options, state);
  return state;
}

void advance_branch(const Problem& problem, const BranchOptions& options, std::size_t most, BranchState& state,
                    Control& control) {
  if (state.finished) return;
  const std::size_t count = std::min(most, state.open.size());
  std::vector<std::optional<Outcome>> outcomes(count);
  parallel_for(count, options.threads, [&](std::size_t i, std::size_t) {
    if (!control.stopped())
      outcomes[i] = bound(problem, options, state.open[i], state.likely, state.threshold, control);
  });
  for (const auto& outcome : outcomes)
    if (outcome) state.board.merge(outcome->board);
  if (control.reason() != StopReason::completed) return;
  for (std::size_t i = 0; i < count; ++i) {
    state.evaluated += outcomes[i]->evaluated;
    if (outcomes[i]->closed)
      state.closed.push_back(std::move(state.open[i]));
    else
      split(state.open[i], outcomes[i]->split, problem.k(), state.next);
  }
  state.open.erase(state.open.begin(), state.open.begin() + static_cast<std::ptrdiff_t>(count));
  control.evaluations = state.evaluated;
  if (state.open.empty()) begin_level(options, state);
}

BranchState branch(const Problem& problem, const BranchOptions& options, Control& control) {
  BranchState state = begin_branch(problem, options);
  while (!state.finished && !control.stopped())
    advance_branch(problem, options, std::numeric_limits<std::size_t>::max(), state, control);
  return state;
}

}  // namespace fedsel
