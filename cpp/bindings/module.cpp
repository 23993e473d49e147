#include <pybind11/pybind11.h>

namespace py = pybind11;

void register_agreement(py::module_& m);
void register_count(py::module_& m);
void register_loss(py::module_& m);
void register_proofs(py::module_& m);
void register_rows(py::module_& m);
void register_search(py::module_& m);
void register_subgroups(py::module_& m);

PYBIND11_MODULE(_core, m) {
  m.doc() = "C++ core of fedsel: counting, federation loss, search, subgroups.";
  m.attr("__version__") = FEDSEL_VERSION;
  register_agreement(m);
  register_count(m);
  register_loss(m);
  register_rows(m);
  register_search(m);
  register_proofs(m);
  register_subgroups(m);
}
