#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "code_columns.hpp"
#include "subgroup_search.hpp"
#include "watched.hpp"

namespace py = pybind11;
using namespace fedsel;
using fedsel_bindings::run_watched;

namespace {

using Ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
using Values = py::array_t<std::int64_t, py::array::c_style>;

std::shared_ptr<BitTable> make_table(const std::vector<py::array>& arrays,
                                     const std::vector<std::pair<std::uint32_t, Ranges>>& conditions,
                                     const Values& outcomes, double unit, std::size_t threads,
                                     const std::string& level) {
  const auto columns = fedsel_bindings::code_columns(arrays);
  if (outcomes.ndim() != 1 || (!arrays.empty() && outcomes.shape(0) != arrays[0].shape(0)))
    throw std::invalid_argument("there must be one outcome a row");
  std::vector<Condition> converted;
  for (const auto& [variable, ranges] : conditions) converted.push_back({variable, ranges});
  const std::vector<std::int64_t> values(outcomes.data(), outcomes.data() + outcomes.size());
  const Level chosen = level_from(level);
  py::gil_scoped_release release;
  return std::make_shared<BitTable>(columns, converted, values, unit, threads, chosen);
}

struct BoundQuality {
  Measure measure;
  double exponent;
  Direction direction;
  Support support;

  BoundQuality(const std::string& m, double e, const std::string& d, std::int64_t least, std::int64_t most)
      : measure(measure_from(m)), exponent(e), direction(direction_from(d)), support{least, most} {}
  Quality of(const Outcome& outcome) const { return Quality(measure, exponent, direction, outcome, support); }
};

SubgroupOptions options_of(std::size_t depth, std::size_t keep, double floor, std::size_t threads) {
  if (depth < 1) throw std::invalid_argument("depth must be at least 1");
  if (keep < 1) throw std::invalid_argument("keep must be at least 1");
  return {depth, keep, floor, threads};
}

py::dict describe(const std::vector<Subgroup>& subgroups, const Control& control) {
  py::list found;
  for (const Subgroup& subgroup : subgroups)
    found.append(py::make_tuple(subgroup.quality, subgroup.conditions, subgroup.tally.rows(), subgroup.tally.sum()));
  py::dict result;
  result["found"] = found;
  result["evaluations"] = control.evaluations.load();
  result["stop_reason"] = fedsel_bindings::name_of(control.reason());
  return result;
}

py::dict bind_beam(const std::shared_ptr<BitTable>& table, const BoundQuality& bound, std::size_t depth,
                   std::size_t width, std::size_t keep, double floor, const std::string& diversity, double alpha,
                   std::size_t threads, double time_limit, const py::object& progress) {
  const auto options = options_of(depth, keep, floor, threads);
  if (width < 1) throw std::invalid_argument("width must be at least 1");
  const BeamOptions beam{width, diversity_from(diversity), alpha};
  const Quality quality = bound.of(table->outcome());
  Control control(time_limit);
  const auto result =
      run_watched(control, progress, [&](Control& c) { return search_beam(*table, quality, options, beam, c); });
  return describe(result, control);
}

py::dict bind_exact(const std::shared_ptr<BitTable>& table, const BoundQuality& bound, std::size_t depth,
                    std::size_t keep, double floor, std::size_t threads, double time_limit,
                    const py::object& progress) {
  const auto options = options_of(depth, keep, floor, threads);
  const Quality quality = bound.of(table->outcome());
  Control control(time_limit);
  const auto result =
      run_watched(control, progress, [&](Control& c) { return search_exact(*table, quality, options, c); });
  return describe(result, control);
}

py::dict bind_marginals(const std::vector<py::array>& arrays, const std::vector<std::vector<std::int64_t>>& conditions,
                        const py::array_t<std::uint8_t, py::array::c_style>& outcomes, const BoundQuality& bound,
                        std::size_t depth, std::size_t keep, double floor, std::size_t threads, double time_limit,
                        const py::object& progress) {
  const auto options = options_of(depth, keep, floor, threads);
  const auto codes = fedsel_bindings::code_columns(arrays);
  if (codes.empty() || codes.size() != conditions.size())
    throw std::invalid_argument("there must be conditions for every column, and at least one column");
  if (outcomes.ndim() != 1 || outcomes.shape(0) != arrays[0].shape(0))
    throw std::invalid_argument("there must be one outcome a row");
  const std::size_t rows = static_cast<std::size_t>(outcomes.size());
  std::vector<CategoryColumn> columns;
  for (std::size_t v = 0; v < codes.size(); ++v) {
    if (conditions[v].empty()) throw std::invalid_argument("a column must have at least one category");
    columns.push_back({codes[v], conditions[v]});
  }
  const std::uint8_t* values = outcomes.data();
  Outcome outcome;
  for (std::size_t row = 0; row < rows; ++row) {
    if (values[row] > 1) throw std::invalid_argument("outcomes must be 0 or 1");
    outcome.total.high_rows += values[row];
  }
  outcome.total.high_sum = outcome.total.high_rows;
  outcome.total.low_rows = static_cast<std::int64_t>(rows) - outcome.total.high_rows;
  const Quality quality = bound.of(outcome);
  Control control(time_limit);
  const auto result = run_watched(
      control, progress, [&](Control& c) { return search_marginals(columns, values, rows, quality, options, c); });
  return describe(result, control);
}

// (quality, rows, sum of outcomes) of descriptions; NaN where no row is covered.
py::list bind_values(const std::shared_ptr<BitTable>& table, const BoundQuality& bound,
                     const std::vector<Description>& descriptions) {
  const Quality quality = bound.of(table->outcome());
  py::list result;
  for (const Description& description : descriptions) {
    for (std::size_t i = 0; i < description.size(); ++i)
      if (description[i] >= table->conditions() || (i > 0 && description[i] <= description[i - 1]))
        throw std::invalid_argument("a description must list conditions of the table in increasing order");
    if (description.empty()) throw std::invalid_argument("a description must hold at least one condition");
    const Description parent(description.begin(), description.end() - 1);
    const Tally tally = count_refinements(*table, {{{parent}, {description.back()}}}, 1).front().front();
    const double value = tally.rows() > 0 ? quality.value(tally) : std::numeric_limits<double>::quiet_NaN();
    result.append(py::make_tuple(value, tally.rows(), tally.sum()));
  }
  return result;
}

std::vector<std::size_t> bind_diverse(const std::shared_ptr<BitTable>& table,
                                      const std::vector<std::tuple<double, Description, std::int64_t>>& candidates,
                                      std::size_t count, const std::string& diversity, double alpha,
                                      std::size_t threads) {
  std::vector<Subgroup> subgroups;
  for (const auto& [quality, conditions, rows] : candidates) {
    if (rows < 1) throw std::invalid_argument("a candidate must cover a row");
    for (const std::uint32_t condition : conditions)
      if (condition >= table->conditions()) throw std::invalid_argument("a candidate names an unknown condition");
    subgroups.push_back({quality, conditions, {rows, 0, 0, 0}});
  }
  const Diversity kind = diversity_from(diversity);
  Control control(1e18);
  py::gil_scoped_release release;
  return select_diverse(*table, subgroups, count, kind, alpha, threads, control);
}

}  // namespace

void register_subgroups(py::module_& m) {
  py::class_<BitTable, std::shared_ptr<BitTable>>(m, "BitTable", "Rows as bit sets, one a condition.")
      .def(py::init(&make_table), py::arg("columns"), py::arg("conditions"), py::arg("outcomes").noconvert(),
           py::kw_only(), py::arg("unit") = 1.0, py::arg("threads") = 1, py::arg("level") = "auto")
      .def_property_readonly("conditions", &BitTable::conditions)
      .def_property_readonly("digits", &BitTable::digits);
  py::class_<BoundQuality>(m, "SubgroupQuality", "A quality function, its direction, and which supports it allows.")
      .def(py::init<const std::string&, double, const std::string&, std::int64_t, std::int64_t>(), py::arg("measure"),
           py::kw_only(), py::arg("exponent"), py::arg("direction"), py::arg("least_rows"), py::arg("most_rows"));
  m.def("subgroup_beam", &bind_beam, py::arg("table").none(false), py::arg("quality"), py::kw_only(), py::arg("depth"),
        py::arg("width"), py::arg("keep"), py::arg("floor"), py::arg("diversity"), py::arg("alpha"), py::arg("threads"),
        py::arg("time_limit"), py::arg("progress"));
  m.def("subgroup_exact", &bind_exact, py::arg("table").none(false), py::arg("quality"), py::kw_only(),
        py::arg("depth"), py::arg("keep"), py::arg("floor"), py::arg("threads"), py::arg("time_limit"),
        py::arg("progress"));
  m.def("subgroup_marginals", &bind_marginals, py::arg("columns"), py::arg("conditions"),
        py::arg("outcomes").noconvert(), py::arg("quality"), py::kw_only(), py::arg("depth"), py::arg("keep"),
        py::arg("floor"), py::arg("threads"), py::arg("time_limit"), py::arg("progress"));
  m.def("subgroup_values", &bind_values, py::arg("table").none(false), py::arg("quality"), py::arg("descriptions"));
  m.def("select_diverse", &bind_diverse, py::arg("table").none(false), py::arg("candidates"), py::kw_only(),
        py::arg("count"), py::arg("diversity"), py::arg("alpha"), py::arg("threads"));
}
