// How a running search is watched and stopped from another thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace fedsel {

enum class StopReason { completed, time_limit, interrupted };

class Control {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Control(double seconds) : deadline_(deadline(seconds)) {}

  void interrupt() { stop(StopReason::interrupted); }

  // True once the search must return its best so far. Costs a clock reading: ask every few microseconds of work.
  bool stopped() {
    if (reason_.load(std::memory_order_relaxed) != StopReason::completed) return true;
    if (Clock::now() < deadline_) return false;
    stop(StopReason::time_limit);
    return true;
  }

  StopReason reason() const { return reason_.load(); }

  std::atomic<std::uint64_t> evaluations{0};
  std::atomic<std::uint64_t> planned{0};  // 0 while unknown

 private:
  static Clock::time_point deadline(double seconds) {
    if (!(seconds < 1e9)) return Clock::time_point::max();
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  void stop(StopReason reason) {
    StopReason running = StopReason::completed;
    reason_.compare_exchange_strong(running, reason);
  }

  Clock::time_point deadline_;
  std::atomic<StopReason> reason_{StopReason::completed};
};

}  // namespace fedsel
