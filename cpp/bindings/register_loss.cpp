#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "federation.hpp"
#include "parallel.hpp"
#include "table_specs.hpp"

namespace py = pybind11;
using namespace fedsel;

namespace {

using Counts = py::array_t<std::int32_t, py::array::c_style>;
using MemberArray = py::array_t<std::uint32_t, py::array::c_style>;

std::shared_ptr<LossModel> make_model(const Counts& counts, const fedsel_bindings::TableTuples& tables,
                                      const Components& weights, const std::string& level) {
  auto specs = fedsel_bindings::specs_of(tables);
  if (counts.ndim() != 2 || static_cast<std::size_t>(counts.shape(1)) != specs.cells)
    throw std::invalid_argument("counts must have shape (clients, " + std::to_string(specs.cells) + ")");
  const Level chosen = level_from(level);
  py::gil_scoped_release release;
  return std::make_shared<LossModel>(counts.data(), static_cast<std::size_t>(counts.shape(0)), std::move(specs.tables),
                                     weights, chosen);
}

py::array_t<double> copy(const double* data, std::size_t size) {
  py::array_t<double> out(static_cast<py::ssize_t>(size));
  std::copy_n(data, size, out.mutable_data());
  return out;
}

py::array_t<double> information(const LossModel& model, const Members& members) {
  Evaluator evaluator(model);
  const Federation federation(model, members);
  const double* values = evaluator.information(federation.sums());
  model.check_rows();
  return copy(values, model.tables().size());
}

py::array_t<double> components(const LossModel& model, const MemberArray& federations, std::size_t threads) {
  if (federations.ndim() != 2) throw std::invalid_argument("federations must have shape (federations, k)");
  const auto count = static_cast<std::size_t>(federations.shape(0)), k = static_cast<std::size_t>(federations.shape(1));
  py::array_t<double> out({federations.shape(0), static_cast<py::ssize_t>(kComponents)});
  double* to = out.mutable_data();
  const std::uint32_t* from = federations.data();
  py::gil_scoped_release release;
  constexpr std::size_t kChunk = 64;  // federations a task: an Evaluator each
  parallel_for((count + kChunk - 1) / kChunk, threads, [&](std::size_t task, std::size_t) {
    Evaluator evaluator(model);
    for (std::size_t i = task * kChunk; i < std::min(count, (task + 1) * kChunk); ++i) {
      const Federation federation(model, Members(from + i * k, from + (i + 1) * k));
      const Components c = evaluator.components(federation.sums());
      std::copy(c.begin(), c.end(), to + i * kComponents);
    }
  });
  model.check_rows();
  return out;
}

// A federation under swaps, with its evaluator.
struct State {
  std::shared_ptr<LossModel> model;
  Evaluator evaluator;
  Federation federation;

  State(std::shared_ptr<LossModel> m, Members members)
      : model(std::move(m)), evaluator(*model), federation(*model, std::move(members)) {}

  void swap(std::uint32_t out, std::uint32_t in) {
    const auto& members = federation.members();
    const auto position = std::find(members.begin(), members.end(), out);
    if (position == members.end()) throw std::invalid_argument("client " + std::to_string(out) + " is not a member");
    if (in >= model->clients() || federation.contains(in))
      throw std::invalid_argument("client " + std::to_string(in) + " is not an outsider");
    federation.swap(evaluator, static_cast<std::size_t>(position - members.begin()), in);
  }
};

}  // namespace

void register_loss(py::module_& m) {
  py::class_<LossModel, std::shared_ptr<LossModel>>(m, "LossModel", "A pool ready for evaluation; copies the counts.")
      .def(py::init(&make_model), py::arg("counts").noconvert(), py::arg("tables"), py::arg("weights"),
           py::arg("level") = "auto")
      .def_property_readonly("clients", &LossModel::clients)
      .def_property_readonly("consistent", &LossModel::consistent)
      .def_property_readonly("level", [](const LossModel& model) { return std::string(name_of(model.level())); })
      .def(
          "reweighted",
          [](const LossModel& model, const Components& weights) {
            return std::make_shared<LossModel>(model.reweighted(weights));
          },
          py::arg("weights"))
      .def("information", &information, py::arg("members"))
      .def("components", &components, py::arg("federations").noconvert(), py::arg("threads") = 1);
  py::class_<State>(m, "FederationState", "A federation whose sums follow swaps.")
      .def(py::init<std::shared_ptr<LossModel>, Members>(), py::arg("model").none(false), py::arg("members"))
      .def_property_readonly("members", [](const State& s) { return s.federation.members(); })
      .def("swap", &State::swap, py::arg("out"), py::arg("in_"))
      .def("components", [](State& s) {
        s.model->check_rows();
        return copy(s.evaluator.components(s.federation.sums()).data(), kComponents);
      });
  m.def(
      "levels",
      [] {
        std::vector<std::string> names;
        for (Level level : {Level::plain, Level::avx2, Level::avx512})
          if (supported(level)) names.emplace_back(name_of(level));
        return names;
      },
      "Instruction-set levels this CPU supports, slowest first.");
}
