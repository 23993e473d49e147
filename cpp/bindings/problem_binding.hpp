// What the bindings of all searches share: a problem, checked starts, results as Python values.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "leaderboard.hpp"
#include "problem.hpp"
#include "watched.hpp"

namespace fedsel_bindings {

using fedsel::Balance;
using fedsel::Control;
using fedsel::Federation;
using fedsel::Leaderboard;
using fedsel::LinearConstraint;
using fedsel::LossModel;
using fedsel::Members;
using fedsel::Problem;

using Amounts = std::tuple<std::vector<std::int64_t>, std::int64_t, std::int64_t>;  // amounts, lower, upper

// A problem and the model it refers to.
struct BoundProblem {
  std::shared_ptr<LossModel> model;
  Problem problem;

  BoundProblem(std::shared_ptr<LossModel> m, std::size_t k, Members fixed, Members free,
               const std::vector<Amounts>& constraints, Members fallback)
      : model(std::move(m)),
        problem(*model, k, std::move(fixed), std::move(free), convert(constraints), std::move(fallback)) {}

  static std::vector<LinearConstraint> convert(const std::vector<Amounts>& constraints) {
    std::vector<LinearConstraint> result;
    for (const auto& [amounts, lower, upper] : constraints) result.push_back({amounts, lower, upper});
    return result;
  }
};

// What was computed from rows that are not whole is not returned.
template <class Run>
auto run_watched(const LossModel& model, Control& control, const py::object& progress, Run run) {
  return run_watched(control, progress, [&] { model.check_rows(); }, std::move(run));
}

template <class Run>
auto run_watched(const BoundProblem& bound, Control& control, const py::object& progress, Run run) {
  return run_watched(*bound.model, control, progress, std::move(run));
}

// Federations to start from: checked, and with the fixed members first, as the searches want them.
inline std::vector<Members> starts_of(const Problem& problem, std::vector<Members> starts) {
  for (auto& start : starts) {
    if (start.size() != problem.k())
      throw std::invalid_argument("an initial federation must have k = " + std::to_string(problem.k()) +
                                  " members, got " + std::to_string(start.size()));
    const Federation check(problem.model(), start);
    std::sort(start.begin(), start.end());
    const Members& fixed = problem.fixed();
    if (!std::includes(start.begin(), start.end(), fixed.begin(), fixed.end()))
      throw std::invalid_argument("an initial federation lacks a fixed member");
    const auto chosen = std::stable_partition(start.begin(), start.end(), [&](std::uint32_t client) {
      return std::binary_search(fixed.begin(), fixed.end(), client);
    });
    if (!std::includes(problem.free().begin(), problem.free().end(), chosen, start.end()))
      throw std::invalid_argument("an initial federation has a member that is excluded");
    if (Balance(problem, start).violation() > 0.0)
      throw std::invalid_argument("an initial federation does not meet the constraints");
  }
  return starts;
}

inline py::dict describe(const Leaderboard& board, const Control& control) {
  py::list entries;
  for (const auto& entry : board.entries()) entries.append(py::make_tuple(entry.loss, py::cast(entry.members)));
  py::dict result;
  result["best"] = entries;
  result["evaluations"] = control.evaluations.load();
  result["stop_reason"] = name_of(control.reason());
  return result;
}

inline void check_effort(std::size_t keep, std::size_t starts) {
  if (keep < 1) throw std::invalid_argument("keep must be at least 1");
  if (starts > 1'000'000) throw std::invalid_argument("starts and chains must be at most 1,000,000");
}

}  // namespace fedsel_bindings
