#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "loss_model.hpp"
#include "table_specs.hpp"

namespace py = pybind11;
using namespace fedsel;
using fedsel_bindings::Specs;
using fedsel_bindings::specs_of;
using fedsel_bindings::TableTuples;

namespace {

using Counts = py::array_t<std::int32_t, py::array::c_style>;

void check_shape(const Counts& counts, const Specs& specs) {
  if (counts.ndim() != 2 || static_cast<std::size_t>(counts.shape(1)) != specs.cells)
    throw std::invalid_argument("counts must have shape (clients, " + std::to_string(specs.cells) + ")");
}

bool agree(const Counts& counts, const TableTuples& tables) {
  const Specs specs = specs_of(tables);
  check_shape(counts, specs);
  py::gil_scoped_release release;
  return tables_agree(specs.tables, counts.data(), static_cast<std::size_t>(counts.shape(0)));
}

py::array_t<std::int32_t> lay_out(const Counts& counts, const TableTuples& tables, bool consistent) {
  const Specs specs = specs_of(tables);
  check_shape(counts, specs);
  const Layout layout = row_layout(specs.tables, consistent);
  const std::size_t stride = row_stride(layout);
  const auto clients = static_cast<std::size_t>(counts.shape(0));
  py::array_t<std::int32_t> rows({counts.shape(0), static_cast<py::ssize_t>(stride)});
  std::int32_t* to = rows.mutable_data();
  const std::int32_t* from = counts.data();
  py::gil_scoped_release release;
  std::fill_n(to, clients * stride, 0);
  for (std::size_t i = 0; i < clients; ++i) layout.write(from + i * specs.cells, to + i * stride);
  return rows;
}

std::shared_ptr<LossModel> map_model(const std::string& path, std::size_t offset, std::size_t clients,
                                     const TableTuples& tables, bool consistent, const Components& weights,
                                     const std::string& level) {
  Specs specs = specs_of(tables);
  const std::size_t stride = row_stride(row_layout(specs.tables, consistent));
  if (clients > (std::size_t{1} << 60) / (4 * stride)) throw std::invalid_argument("too many clients");
  const Level chosen = level_from(level);
  py::gil_scoped_release release;
  auto rows = std::make_shared<const MappedRows>(path, offset, clients * stride);
  return std::make_shared<LossModel>(std::move(rows), clients, std::move(specs.tables), consistent, weights, chosen);
}

}  // namespace

void register_rows(py::module_& m) {
  py::register_local_exception_translator([](std::exception_ptr raised) {
    try {
      if (raised) std::rethrow_exception(raised);
    } catch (const RowsLost& lost) {
      py::set_error(py::module_::import("fedsel.errors").attr("SelectionError"), lost.what());
    }
  });
  m.def("tables_agree", &agree, py::arg("counts").noconvert(), py::arg("tables"),
        "Whether every client's tables are non-negative and agree on totals and shared margins.");
  m.def(
      "row_stride",
      [](const TableTuples& tables, bool consistent) {
        return row_stride(row_layout(specs_of(tables).tables, consistent));
      },
      py::arg("tables"), py::arg("consistent"), "Values of a client's row as the kernels read it.");
  m.def("lay_out", &lay_out, py::arg("counts").noconvert(), py::arg("tables"), py::arg("consistent"),
        "Rows of clients as the kernels read them, (clients, row_stride).");
  m.def("map_model", &map_model, py::arg("path"), py::arg("offset"), py::arg("clients"), py::arg("tables"),
        py::arg("consistent"), py::arg("weights"), py::arg("level") = "auto",
        "A model of rows in a file, which is mapped, not read.");
}
