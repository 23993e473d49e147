#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "agreement.hpp"

namespace py = pybind11;
using namespace fedsel;

namespace {

using Reals = py::array_t<double, py::array::c_style>;
using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

constexpr double kTolerance = 1e-9;  // of a client's records
constexpr std::int64_t kMostUnits = (std::int64_t{1} << 31) - 1;

// Tables of a workload of pairs, and where a client's margins, one variable after another, begin.
struct Shape {
  std::vector<AgreedTable> tables;
  std::vector<std::size_t> offsets{0};
  std::size_t cells = 0;

  Shape(const std::vector<std::uint32_t>& domain, const Pairs& pairs) {
    for (auto size : domain) offsets.push_back(offsets.back() + size);
    for (const auto& [first, second] : pairs) {
      if (first >= domain.size() || second >= domain.size())
        throw std::invalid_argument("a table's variables must be below " + std::to_string(domain.size()));
      tables.push_back({domain[first], domain[second], offsets[first], offsets[second]});
      cells += static_cast<std::size_t>(domain[first]) * domain[second];
    }
  }

  void check(const Reals& counts, const Reals& margins) const {
    if (counts.ndim() != 2 || static_cast<std::size_t>(counts.shape(1)) != cells)
      throw std::invalid_argument("cells must have shape (clients, " + std::to_string(cells) + ")");
    if (margins.ndim() != 2 || margins.shape(0) != counts.shape(0) ||
        static_cast<std::size_t>(margins.shape(1)) != offsets.back())
      throw std::invalid_argument("margins must have shape (" + std::to_string(counts.shape(0)) + ", " +
                                  std::to_string(offsets.back()) + ")");
    for (const auto* array : {&counts, &margins})
      if (!std::all_of(array->data(), array->data() + array->size(),
                       [](double value) { return value >= 0.0 && value < HUGE_VAL; }))
        throw std::invalid_argument("cells and margins must be finite and not negative");
  }
};

Reals rake_tables(const Reals& counts, const Reals& margins, const std::vector<std::uint32_t>& domain,
                  const Pairs& pairs) {
  const Shape shape(domain, pairs);
  shape.check(counts, margins);
  Reals out({counts.shape(0), counts.shape(1)});
  double* to = out.mutable_data();
  std::copy_n(counts.data(), counts.size(), to);
  const double* margin = margins.data();
  py::gil_scoped_release release;
  TableFitter fitter;
  for (py::ssize_t client = 0; client < counts.shape(0); ++client, margin += shape.offsets.back())
    for (const auto& table : shape.tables) {
      double records = 0.0;
      for (std::size_t i = 0; i < table.rows; ++i) records += margin[table.row_margin + i];
      fitter.rake(table, margin, kTolerance * records, to);
      to += static_cast<std::size_t>(table.rows) * table.columns;
    }
  return out;
}

py::array_t<std::int32_t> round_tables(const Reals& counts, const Reals& margins,
                                       const std::vector<std::int64_t>& totals,
                                       const std::vector<std::uint32_t>& domain, const Pairs& pairs) {
  const Shape shape(domain, pairs);
  shape.check(counts, margins);
  if (totals.size() != static_cast<std::size_t>(counts.shape(0)))
    throw std::invalid_argument("there must be one total a client");
  for (auto total : totals)
    if (total < 0 || total > kMostUnits)
      throw std::invalid_argument("totals must be between 0 and 2^31 - 1, got " + std::to_string(total));
  py::array_t<std::int32_t> out({counts.shape(0), counts.shape(1)});
  std::int32_t* to = out.mutable_data();
  const double *from = counts.data(), *margin = margins.data();
  py::gil_scoped_release release;
  TableFitter fitter;
  std::vector<std::int32_t> whole(shape.offsets.back());
  std::vector<double> cells;
  for (auto total : totals) {
    for (std::size_t v = 0; v + 1 < shape.offsets.size(); ++v)
      largest_remainders(margin + shape.offsets[v], shape.offsets[v + 1] - shape.offsets[v],
                         static_cast<std::int32_t>(total), whole.data() + shape.offsets[v]);
    for (const auto& table : shape.tables) {
      const std::size_t size = static_cast<std::size_t>(table.rows) * table.columns;
      cells.assign(from, from + size);
      fitter.round(table, whole.data(), cells.data(), to);
      from += size;
      to += size;
    }
    margin += shape.offsets.back();
  }
  return out;
}

}  // namespace

void register_agreement(py::module_& m) {
  m.def("rake_tables", &rake_tables, py::arg("cells").noconvert(), py::arg("margins").noconvert(), py::arg("domain"),
        py::arg("pairs"), "Fit tables of clients to margins.");
  m.def("round_tables", &round_tables, py::arg("cells").noconvert(), py::arg("margins").noconvert(), py::arg("totals"),
        py::arg("domain"), py::arg("pairs"), "Whole tables of clients that agree exactly on margins and totals.");
}
