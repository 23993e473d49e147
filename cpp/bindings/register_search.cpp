#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>

#include "anneal.hpp"
#include "enumerate.hpp"
#include "expand.hpp"
#include "watched.hpp"

namespace py = pybind11;
using namespace fedsel;
using fedsel_bindings::run_watched;

namespace {

void check_k(const LossModel& model, std::size_t k) {
  if (k < 1 || k > model.clients())
    throw std::invalid_argument("k must be between 1 and " + std::to_string(model.clients()) + ", got " +
                                std::to_string(k));
}

py::dict describe(const Leaderboard& board, const Control& control) {
  py::list entries;
  for (const auto& entry : board.entries()) entries.append(py::make_tuple(entry.loss, py::cast(entry.members)));
  py::dict result;
  result["best"] = entries;
  result["evaluations"] = control.evaluations.load();
  result["stop_reason"] = fedsel_bindings::name_of(control.reason());
  return result;
}

py::dict bind_enumerate(const LossModel& model, std::size_t k, std::size_t keep, std::size_t threads, double time_limit,
                        const py::object& progress) {
  check_k(model, k);
  Control control(time_limit);
  const auto result = run_watched(control, progress, [&](Control& c) { return enumerate(model, k, keep, threads, c); });
  py::dict out = describe(result.board, control);
  out["complete"] = result.complete;
  return out;
}

py::dict bind_expand(const LossModel& model, std::size_t k, std::size_t random_starts, std::size_t keep,
                     std::size_t threads, std::uint64_t seed, double time_limit, const py::object& progress) {
  check_k(model, k);
  Control control(time_limit);
  const auto result = run_watched(
      control, progress, [&](Control& c) { return expand(model, {k, random_starts, keep, threads, seed}, c); });
  py::dict out = describe(result.board, control);
  out["swap_optimal"] = result.swap_optimal;
  return out;
}

py::dict bind_anneal(const LossModel& model, std::size_t k, std::vector<double> temperatures,
                     std::size_t evaluations_per_level, std::size_t max_evaluations, std::size_t chains,
                     std::size_t keep, std::size_t threads, std::uint64_t seed, std::vector<Members> initial_states,
                     double time_limit, const py::object& progress) {
  check_k(model, k);
  if (!initial_states.empty() && initial_states.size() != chains)
    throw std::invalid_argument("initial states must be one a chain, got " + std::to_string(initial_states.size()) +
                                " for " + std::to_string(chains) + " chains");
  for (const auto& state : initial_states)
    if (state.size() != k) throw std::invalid_argument("an initial state must have k members");
  Control control(time_limit);
  const AnnealingOptions options{
      k,    std::move(temperatures),  evaluations_per_level, max_evaluations, chains, keep, threads,
      seed, std::move(initial_states)};
  const auto result = run_watched(control, progress, [&](Control& c) { return anneal(model, options, c); });
  py::dict out = describe(result.board, control);
  py::list chains_out;
  for (const auto& chain : result.chains)
    chains_out.append(py::make_tuple(chain.best.loss, chain.best.members, chain.evaluations, chain.trace));
  out["chains"] = chains_out;
  return out;
}

}  // namespace

void register_search(py::module_& m) {
  m.def("binomial", &binomial, py::arg("n"), py::arg("k"), "Number of k-subsets, saturating at 2^64 - 1.");
  m.def("enumerate", &bind_enumerate, py::arg("model"), py::arg("k"), py::kw_only(), py::arg("keep"),
        py::arg("threads"), py::arg("time_limit"), py::arg("progress"));
  m.def("expand", &bind_expand, py::arg("model"), py::arg("k"), py::kw_only(), py::arg("random_starts"),
        py::arg("keep"), py::arg("threads"), py::arg("seed"), py::arg("time_limit"), py::arg("progress"));
  m.def("anneal", &bind_anneal, py::arg("model"), py::arg("k"), py::kw_only(), py::arg("temperatures"),
        py::arg("evaluations_per_level"), py::arg("max_evaluations"), py::arg("chains"), py::arg("keep"),
        py::arg("threads"), py::arg("seed"), py::arg("initial_states"), py::arg("time_limit"), py::arg("progress"));
}
