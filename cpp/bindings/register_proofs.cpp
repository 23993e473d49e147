#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "branch.hpp"
#include "enumerate.hpp"
#include "problem_binding.hpp"

namespace py = pybind11;
using namespace fedsel;
using namespace fedsel_bindings;

namespace {

using Known = std::vector<std::pair<double, Members>>;

// Federations that an earlier run of the same problem found, with their losses.
std::vector<Candidate> candidates_of(const Problem& problem, const Known& known) {
  std::vector<Candidate> result;
  for (const auto& [loss, members] : known) {
    Members sorted = starts_of(problem, {members})[0];
    std::sort(sorted.begin(), sorted.end());
    result.push_back({loss, std::move(sorted)});
  }
  return result;
}

py::dict bind_enumerate(const BoundProblem& bound, std::size_t keep, std::size_t threads, double time_limit,
                        const py::object& progress, std::uint64_t first, std::uint64_t last, const Known& known) {
  check_effort(keep, 0);
  if (first > last) throw std::invalid_argument("first must be at most last");
  const auto candidates = candidates_of(bound.problem, known);
  Control control(time_limit);
  const auto result = run_watched(bound, control, progress, [&](Control& c) {
    return enumerate(bound.problem, keep, threads, c, {first, last}, candidates);
  });
  py::dict out = describe(result.board, control);
  out["complete"] = result.complete;
  return out;
}

// Branch and bound, a step at a time.
class Branching {
 public:
  Branching(const BoundProblem& bound, const Members& known, std::vector<double> gaps, std::uint64_t most_nodes,
            std::size_t keep, std::size_t threads)
      : model_(bound.model),
        problem_(bound.problem),
        options_{starts_of(problem_, {known})[0], checked(std::move(gaps)), most_nodes, keep, threads},
        state_(begin(problem_, options_)) {}

  py::dict advance(std::size_t most, double time_limit, const py::object& progress) {
    Control control(time_limit);
    run_watched(*model_, control, progress, [&](Control& c) {
      c.evaluations = state_.evaluated;
      advance_branch(problem_, options_, most, state_, c);
      return 0;
    });
    py::dict out = describe(state_.board, control);
    out["evaluations"] = state_.evaluated;
    out["finished"] = state_.finished;
    out["applies"] = state_.applies;
    out["optimal"] = state_.optimal;
    out["bound"] = state_.bound;
    out["nodes"] = state_.nodes;
    return out;
  }

  // Everything that the next step depends on, in plain values.
  py::dict state() const {
    py::dict out;
    out["finished"] = state_.finished;
    out["optimal"] = state_.optimal;
    out["bound"] = state_.bound;
    out["nodes"] = state_.nodes;
    out["evaluated"] = state_.evaluated;
    out["gap"] = state_.gap;
    out["threshold"] = state_.threshold;
    out["likely"] = state_.likely;
    out["open"] = lists(state_.open);
    out["next"] = lists(state_.next);
    out["closed"] = lists(state_.closed);
    py::list best;
    for (const auto& entry : state_.board.entries()) best.append(py::make_tuple(entry.loss, entry.members));
    out["best"] = best;
    return out;
  }

  void restore(const py::dict& saved) {
    BranchState state(options_.keep);
    state.applies = state_.applies;
    state.finished = saved["finished"].cast<bool>();
    state.optimal = saved["optimal"].cast<bool>();
    state.bound = saved["bound"].cast<double>();
    state.nodes = saved["nodes"].cast<std::uint64_t>();
    state.evaluated = saved["evaluated"].cast<std::uint64_t>();
    state.gap = saved["gap"].cast<std::size_t>();
    state.threshold = saved["threshold"].cast<double>();
    state.likely = saved["likely"].cast<Members>();
    state.open = nodes(saved["open"]);
    state.next = nodes(saved["next"]);
    state.closed = nodes(saved["closed"]);
    for (auto& candidate : candidates_of(problem_, saved["best"].cast<Known>()))
      state.board.add(candidate.loss, std::move(candidate.members));
    const bool idle = state.open.empty() && !state.finished;
    if (!state.applies || state.gap > options_.gaps.size() || state.board.entries().empty() || idle)
      throw std::invalid_argument("the state is not one of this search");
    state_ = std::move(state);
  }

 private:
  using Lists = std::vector<std::pair<Members, Members>>;

  static BranchState begin(const Problem& problem, const BranchOptions& options) {
    check_effort(options.keep, 0);
    return begin_branch(problem, options);
  }

  static std::vector<double> checked(std::vector<double> gaps) {
    for (double gap : gaps)
      if (!(gap >= 0.0)) throw std::invalid_argument("gaps must not be negative");
    return gaps;
  }

  static Lists lists(const std::vector<BranchNode>& nodes) {
    Lists out;
    for (const auto& node : nodes) out.emplace_back(node.fixed, node.free);
    return out;
  }

  // Subproblems from a file: every client at most once, and one that the problem knows.
  std::vector<BranchNode> nodes(const py::handle& saved) const {
    std::vector<BranchNode> out;
    for (auto& [fixed, free] : saved.cast<Lists>()) {
      const Problem check(*model_, problem_.k(), fixed, free, {}, {});
      out.push_back({std::move(fixed), std::move(free)});
    }
    return out;
  }

  std::shared_ptr<LossModel> model_;
  Problem problem_;
  BranchOptions options_;
  BranchState state_;
};

}  // namespace

void register_proofs(py::module_& m) {
  m.def("enumerate", &bind_enumerate, py::arg("problem").none(false), py::kw_only(), py::arg("keep"),
        py::arg("threads"), py::arg("time_limit"), py::arg("progress"), py::arg("first") = 0,
        py::arg("last") = std::numeric_limits<std::uint64_t>::max(), py::arg("known") = Known{},
        "Evaluate all federations in a range of blocks.");
  m.def(
      "enumeration_blocks", [](const BoundProblem& bound) { return enumeration_blocks(bound.problem); },
      py::arg("problem").none(false));
  py::class_<Branching>(m, "Branching", "Branch and bound, a step at a time.")
      .def(
          py::init<const BoundProblem&, const Members&, std::vector<double>, std::uint64_t, std::size_t, std::size_t>(),
          py::arg("problem").none(false), py::kw_only(), py::arg("known"), py::arg("gaps"), py::arg("most_nodes"),
          py::arg("keep"), py::arg("threads"))
      .def("advance", &Branching::advance, py::kw_only(), py::arg("most"), py::arg("time_limit"), py::arg("progress"))
      .def("state", &Branching::state)
      .def("restore", &Branching::restore, py::arg("state"));
}
