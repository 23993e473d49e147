#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <tuple>

#include "anneal.hpp"
#include "baselines.hpp"
#include "certify.hpp"
#include "enumerate.hpp"
#include "exchange.hpp"
#include "expand.hpp"
#include "problem_binding.hpp"
#include "quadratic_anneal.hpp"

namespace py = pybind11;
using namespace fedsel;
using namespace fedsel_bindings;

namespace {

const char* name_of(CertifyOutcome outcome) {
  switch (outcome) {
    case CertifyOutcome::certified:
      return "certified";
    case CertifyOutcome::too_wide:
      return "too wide";
    case CertifyOutcome::too_long:
      return "too long";
    case CertifyOutcome::stopped:
      return "stopped";
  }
  return "stopped";
}

py::dict bind_certify(const BoundProblem& bound, const Members& known, std::size_t sample, std::uint64_t most,
                      std::uint64_t most_prefixes, std::size_t keep, std::size_t threads, std::uint64_t seed,
                      double time_limit, const py::object& progress) {
  check_effort(keep, 0);
  if (sample < 1 || sample > 1'000'000) throw std::invalid_argument("sample must be between 1 and 1,000,000");
  const CertifyOptions options{starts_of(bound.problem, {known})[0], sample, most, most_prefixes, keep, threads, seed};
  Control control(time_limit);
  const auto result =
      run_watched(bound, control, progress, [&](Control& c) { return certify(bound.problem, options, c); });
  py::dict out = describe(result.board, control);
  out["evaluations"] = result.rechecked;
  out["outcome"] = name_of(result.outcome);
  out["enumerated"] = result.enumerated;
  out["bounded"] = result.bounded;
  out["prefixes"] = result.prefixes;
  out["compared"] = result.compared;
  out["random_error"] = result.random_error;
  out["best_error"] = result.best_error;
  out["band"] = result.band;
  return out;
}

py::dict bind_exchange(const BoundProblem& bound, const Members& start, std::size_t size, std::size_t keep,
                       std::size_t threads, double time_limit, const py::object& progress) {
  check_effort(keep, 0);
  if (size < 1) throw std::invalid_argument("size must be at least 1");
  const Members checked = starts_of(bound.problem, {start})[0];
  Control control(time_limit);
  const auto result = run_watched(bound, control, progress, [&](Control& c) {
    return descend_by_exchanges(bound.problem, checked, size, keep, threads, c);
  });
  py::dict out = describe(result.board, control);
  out["certified"] = result.optimal;
  return out;
}

py::dict bind_expand(const BoundProblem& bound, std::size_t random_starts, std::size_t keep, std::size_t threads,
                     std::uint64_t seed, double time_limit, const py::object& progress) {
  check_effort(keep, random_starts);
  Control control(time_limit);
  const auto result = run_watched(bound, control, progress, [&](Control& c) {
    return expand(bound.problem, {random_starts, keep, threads, seed}, c);
  });
  py::dict out = describe(result.board, control);
  out["certified"] = result.certified;
  return out;
}

py::dict bind_greedy(const BoundProblem& bound, std::size_t keep, std::uint64_t seed, double time_limit,
                     const py::object& progress) {
  check_effort(keep, 0);
  Control control(time_limit);
  const auto result =
      run_watched(bound, control, progress, [&](Control& c) { return greedy(bound.problem, keep, seed, c); });
  py::dict out = describe(result.board, control);
  out["certified"] = result.certified;
  return out;
}

py::dict bind_descend(const BoundProblem& bound, std::vector<Members> starts, std::size_t random_starts,
                      std::size_t keep, std::size_t threads, std::uint64_t seed, double time_limit,
                      const py::object& progress) {
  const auto checked = starts_of(bound.problem, std::move(starts));
  if (checked.empty() && random_starts == 0) throw std::invalid_argument("descent needs at least one start");
  check_effort(keep, random_starts);
  Control control(time_limit);
  const auto result = run_watched(bound, control, progress, [&](Control& c) {
    return descend(bound.problem, checked, random_starts, keep, threads, seed, c);
  });
  py::dict out = describe(result.board, control);
  out["certified"] = result.certified;
  return out;
}

py::dict describe_chains(const AnnealingResult& result, const Control& control) {
  py::dict out = describe(result.board, control);
  py::list chains_out;
  for (const auto& chain : result.chains)
    chains_out.append(py::make_tuple(chain.best.loss, chain.best.members, chain.evaluations, chain.trace));
  out["chains"] = chains_out;
  return out;
}

AnnealingOptions annealing_options(const Problem& problem, std::vector<double> temperatures,
                                   std::size_t evaluations_per_level, std::size_t max_evaluations, std::size_t chains,
                                   std::size_t keep, std::size_t threads, std::uint64_t seed,
                                   std::vector<Members> initial_states) {
  if (!initial_states.empty() && initial_states.size() != chains)
    throw std::invalid_argument("initial states must be one a chain, got " + std::to_string(initial_states.size()) +
                                " for " + std::to_string(chains) + " chains");
  check_effort(keep, chains);
  if (chains < 1) throw std::invalid_argument("annealing needs at least one chain");
  for (double temperature : temperatures)
    if (!(temperature > 0.0)) throw std::invalid_argument("temperatures must be positive");
  return {std::move(temperatures),
          evaluations_per_level,
          max_evaluations,
          chains,
          keep,
          threads,
          seed,
          starts_of(problem, std::move(initial_states))};
}

py::dict bind_anneal_quadratic(const BoundProblem& bound, std::vector<double> temperatures,
                               std::size_t evaluations_per_level, std::size_t max_evaluations, std::size_t chains,
                               std::size_t keep, std::size_t threads, std::uint64_t seed,
                               std::vector<Members> initial_states, double time_limit, const py::object& progress) {
  const auto options = annealing_options(bound.problem, std::move(temperatures), evaluations_per_level, max_evaluations,
                                         chains, keep, threads, seed, std::move(initial_states));
  Control control(time_limit);
  const auto result =
      run_watched(bound, control, progress, [&](Control& c) { return anneal_quadratic(bound.problem, options, c); });
  py::dict out = describe(result.board, control);
  out["certified"] = result.certified;
  return out;
}

py::dict bind_anneal(const BoundProblem& bound, std::vector<double> temperatures, std::size_t evaluations_per_level,
                     std::size_t max_evaluations, std::size_t chains, std::size_t keep, std::size_t threads,
                     std::uint64_t seed, std::vector<Members> initial_states, bool screen, double time_limit,
                     const py::object& progress) {
  auto options = annealing_options(bound.problem, std::move(temperatures), evaluations_per_level, max_evaluations,
                                   chains, keep, threads, seed, std::move(initial_states));
  options.screen = screen;
  Control control(time_limit);
  const auto result =
      run_watched(bound, control, progress, [&](Control& c) { return anneal(bound.problem, options, c); });
  return describe_chains(result, control);
}

py::dict bind_temper(const BoundProblem& bound, std::vector<double> temperatures, std::size_t evaluations_per_round,
                     std::size_t rounds, std::size_t keep, std::size_t threads, std::uint64_t seed,
                     std::vector<Members> initial_states, double time_limit, const py::object& progress) {
  const std::size_t replicas = temperatures.size();
  const TemperingOptions options{annealing_options(bound.problem, std::move(temperatures), evaluations_per_round, 0,
                                                   replicas, keep, threads, seed, std::move(initial_states)),
                                 rounds};
  Control control(time_limit);
  return describe_chains(
      run_watched(bound, control, progress, [&](Control& c) { return temper(bound.problem, options, c); }), control);
}

// Losses of federations at random, and of all that one swap makes of them: what a schedule is fitted to.
py::array_t<double> bind_swap_gaps(const BoundProblem& bound, std::size_t count, std::uint64_t seed) {
  const Problem& problem = bound.problem;
  std::vector<double> gaps;
  {
    py::gil_scoped_release release;
    Philox random(seed, ~std::uint64_t{0});
    Evaluator evaluator(problem.model());
    AlignedVector<std::int32_t> trial(problem.model().stride(), 0);
    for (std::size_t i = 0; i < count && problem.choices() > 0 && problem.free().size() > problem.choices(); ++i) {
      const Federation federation(problem.model(), problem.random_start(random));
      const std::size_t position = problem.fixed().size() + random.below(static_cast<std::uint32_t>(problem.choices()));
      std::uint32_t in;
      do in = problem.free()[random.below(static_cast<std::uint32_t>(problem.free().size()))];
      while (federation.contains(in));
      const double changed =
          evaluator.exchange_loss(federation.sums(), federation.members()[position], in, trial.data());
      gaps.push_back(std::abs(changed - evaluator.loss(federation.sums())));
    }
  }
  problem.model().check_rows();
  py::array_t<double> out(static_cast<py::ssize_t>(gaps.size()));
  std::copy(gaps.begin(), gaps.end(), out.mutable_data());
  return out;
}

}  // namespace

void register_search(py::module_& m) {
  py::class_<BoundProblem>(m, "Problem", "What a search may choose.")
      .def(py::init<std::shared_ptr<LossModel>, std::size_t, Members, Members, const std::vector<Amounts>&, Members>(),
           py::arg("model").none(false), py::arg("k"), py::kw_only(), py::arg("fixed"), py::arg("free"),
           py::arg("constraints"), py::arg("fallback"));
  m.def("binomial", &binomial, py::arg("n"), py::arg("k"), "Number of k-subsets, saturating at 2^64 - 1.");
  m.def("swap_gaps", &bind_swap_gaps, py::arg("problem").none(false), py::kw_only(), py::arg("count"), py::arg("seed"));
  m.def("certify", &bind_certify, py::arg("problem").none(false), py::kw_only(), py::arg("known"), py::arg("sample"),
        py::arg("most"), py::arg("most_prefixes"), py::arg("keep"), py::arg("threads"), py::arg("seed"),
        py::arg("time_limit"), py::arg("progress"));
  m.def("exchange", &bind_exchange, py::arg("problem").none(false), py::kw_only(), py::arg("start"), py::arg("size"),
        py::arg("keep"), py::arg("threads"), py::arg("time_limit"), py::arg("progress"));
  m.def("expand", &bind_expand, py::arg("problem").none(false), py::kw_only(), py::arg("random_starts"),
        py::arg("keep"), py::arg("threads"), py::arg("seed"), py::arg("time_limit"), py::arg("progress"));
  m.def("greedy", &bind_greedy, py::arg("problem").none(false), py::kw_only(), py::arg("keep"), py::arg("seed"),
        py::arg("time_limit"), py::arg("progress"));
  m.def("descend", &bind_descend, py::arg("problem").none(false), py::kw_only(), py::arg("starts"),
        py::arg("random_starts"), py::arg("keep"), py::arg("threads"), py::arg("seed"), py::arg("time_limit"),
        py::arg("progress"));
  m.def("anneal", &bind_anneal, py::arg("problem").none(false), py::kw_only(), py::arg("temperatures"),
        py::arg("evaluations_per_level"), py::arg("max_evaluations"), py::arg("chains"), py::arg("keep"),
        py::arg("threads"), py::arg("seed"), py::arg("initial_states"), py::arg("screen") = true, py::arg("time_limit"),
        py::arg("progress"));
  m.def("temper", &bind_temper, py::arg("problem").none(false), py::kw_only(), py::arg("temperatures"),
        py::arg("evaluations_per_round"), py::arg("rounds"), py::arg("keep"), py::arg("threads"), py::arg("seed"),
        py::arg("initial_states"), py::arg("time_limit"), py::arg("progress"));
  m.def("anneal_quadratic", &bind_anneal_quadratic, py::arg("problem").none(false), py::kw_only(),
        py::arg("temperatures"), py::arg("evaluations_per_level"), py::arg("max_evaluations"), py::arg("chains"),
        py::arg("keep"), py::arg("threads"), py::arg("seed"), py::arg("initial_states"), py::arg("time_limit"),
        py::arg("progress"));
}
