// Runs a search off the calling thread, which meanwhile answers Ctrl-C and reports progress.
#pragma once

#include <pybind11/pybind11.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "control.hpp"

namespace fedsel_bindings {

namespace py = pybind11;

inline const char* name_of(fedsel::StopReason reason) {
  switch (reason) {
    case fedsel::StopReason::completed:
      return "completed";
    case fedsel::StopReason::time_limit:
      return "time limit";
    case fedsel::StopReason::interrupted:
      return "interrupted";
  }
  return "completed";
}

// `run(control)` works without the GIL. Ctrl-C stops it and counts as its stop reason; an exception of the callback
// stops it and is raised. The callback gets (evaluations, planned evaluations or 0), on the calling thread only. What
// `check` throws, now and then and at the end, stops the search and is thrown, too.
template <class Check, class Run>
auto run_watched(fedsel::Control& control, const py::object& progress, Check check, Run run) {
  using Result = decltype(run(control));
  std::optional<Result> result;
  std::exception_ptr error;
  std::mutex guard;
  std::condition_variable ended;
  bool done = false;
  std::thread worker([&] {
    try {
      result.emplace(run(control));
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(guard);
    done = true;
    ended.notify_one();
  });

  std::exception_ptr raised;
  for (;;) {
    {
      py::gil_scoped_release release;
      std::unique_lock lock(guard);
      if (ended.wait_for(lock, std::chrono::milliseconds(50), [&] { return done; })) break;
    }
    if (raised) continue;
    try {
      check();
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (!progress.is_none()) progress(control.evaluations.load(), control.planned.load());
    } catch (py::error_already_set& e) {
      if (!e.matches(PyExc_KeyboardInterrupt)) raised = std::current_exception();
      control.interrupt();
    } catch (...) {
      raised = std::current_exception();
      control.interrupt();
    }
  }
  {
    py::gil_scoped_release release;
    worker.join();
  }
  if (raised) std::rethrow_exception(raised);
  if (error) std::rethrow_exception(error);
  check();
  return std::move(*result);
}

template <class Run>
auto run_watched(fedsel::Control& control, const py::object& progress, Run run) {
  return run_watched(control, progress, [] {}, std::move(run));
}

}  // namespace fedsel_bindings
