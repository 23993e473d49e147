#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <stdexcept>
#include <string>

#include "code_columns.hpp"
#include "count.hpp"

namespace py = pybind11;

namespace {

fedsel::CodeType code_type(const py::array& column, std::size_t position) {
  const py::dtype dtype = column.dtype();
  const bool native = dtype.byteorder() == '=' || dtype.byteorder() == '|';
  if (dtype.kind() == 'u' && dtype.itemsize() == 1) return fedsel::CodeType::u8;
  if (dtype.kind() == 'u' && dtype.itemsize() == 2 && native) return fedsel::CodeType::u16;
  if (dtype.kind() == 'i' && dtype.itemsize() == 4 && native) return fedsel::CodeType::i32;
  throw std::invalid_argument("column " + std::to_string(position) + " must be uint8, uint16 or int32, got " +
                              py::str(dtype).cast<std::string>());
}

py::array_t<std::int64_t> count_marginals(const std::vector<py::array>& arrays,
                                          const std::vector<std::uint32_t>& domain,
                                          const std::vector<fedsel::VariableSet>& sets) {
  const auto columns = fedsel_bindings::code_columns(arrays);
  const py::ssize_t rows = arrays.empty() ? 0 : arrays[0].size();
  if (columns.empty() || columns.size() != domain.size())
    throw std::invalid_argument("there must be one column a domain, at least one, got " +
                                std::to_string(columns.size()) + " and " + std::to_string(domain.size()));
  constexpr py::ssize_t kMaxCells = py::ssize_t{1} << 34;
  py::ssize_t cells = 0;
  for (const auto& set : sets) {
    py::ssize_t size = 1;
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (set[i] >= domain.size() || (i > 0 && set[i] <= set[i - 1]))
        throw std::invalid_argument("a set must list variables in increasing order");
      if (domain[set[i]] < 1 || size > kMaxCells / domain[set[i]])
        throw std::invalid_argument("a table must have between 1 and 2^34 cells");
      size *= domain[set[i]];
    }
    if (set.empty()) throw std::invalid_argument("a set must hold at least one variable");
    cells += size;
    if (cells > kMaxCells) throw std::invalid_argument("the tables must have at most 2^34 cells together");
  }
  py::array_t<std::int64_t> out(cells);
  std::int64_t* data = out.mutable_data();
  {
    py::gil_scoped_release release;
    fedsel::count_marginals(columns, static_cast<std::size_t>(rows), domain, sets, data);
  }
  return out;
}

}  // namespace

std::vector<fedsel::CodeColumn> fedsel_bindings::code_columns(const std::vector<py::array>& arrays) {
  std::vector<fedsel::CodeColumn> columns;
  const py::ssize_t rows = arrays.empty() ? 0 : arrays[0].size();
  for (std::size_t v = 0; v < arrays.size(); ++v) {
    const py::array& a = arrays[v];
    if (a.ndim() != 1 || a.shape(0) != rows)
      throw std::invalid_argument("column " + std::to_string(v) + " must have shape (" + std::to_string(rows) + ",)");
    columns.push_back({a.data(), a.strides(0), code_type(a, v)});
  }
  return columns;
}

void register_count(py::module_& m) {
  m.def("count_marginals", &count_marginals, py::arg("columns"), py::arg("domain"), py::arg("sets"),
        "Count the tables of a workload; borrows the columns.");
}
