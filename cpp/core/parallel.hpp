// Runs numbered tasks on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace fedsel {

// Calls body(task, worker) for every task below `count`, each once, started in increasing order; `worker` numbers the
// threads from 0. Where the system grants fewer threads than asked, those it grants do the work. Rethrows the first
// exception once all threads have ended.
template <class Body>
void parallel_for(std::size_t count, std::size_t threads, Body body) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr error;
  std::mutex guard;
  auto work = [&](std::size_t worker) {
    try {
      for (std::size_t task; (task = next.fetch_add(1)) < count;) body(task, worker);
    } catch (...) {
      const std::lock_guard lock(guard);
      if (!error) error = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> helpers;
  try {
    for (std::size_t i = 1; i < std::min(threads, count); ++i) helpers.emplace_back(work, i);
  } catch (const std::system_error&) {
  }
  work(0);
  for (auto& helper : helpers) helper.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace fedsel
