// Runs numbered tasks on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fedsel {

// Calls body(task) for every task below `count`, each once, in increasing order of start. Rethrows the first exception
// once all threads have ended.
template <class Body>
void parallel_for(std::size_t count, std::size_t threads, Body body) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr error;
  std::mutex guard;
  auto work = [&] {
    try {
      for (std::size_t task; (task = next.fetch_add(1)) < count;) body(task);
    } catch (...) {
      const std::lock_guard lock(guard);
      if (!error) error = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> helpers;
  for (std::size_t i = 1; i < std::min(threads, count); ++i) helpers.emplace_back(work);
  work();
  for (auto& helper : helpers) helper.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace fedsel
