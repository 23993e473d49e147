// Work in rounds on a few threads that stay until all is done.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "parallel.hpp"

namespace fedsel {

// Item i works `rounds[i]` times: work(i, round), which returns false to leave for good. After round r it meets the
// item partner(i, r), itself for none: once both have worked, meet(i, other, r) is called, and only then do they go on.
// Nobody waits for anyone else, so threads stay busy where a barrier would leave some idle. What an item does depends
// on its own rounds and meetings only, whatever the number of threads. Least advanced items work first, then those of
// lower number. Meetings are never held at the same time. Rethrows the first exception once all threads have ended.
template <class Work, class Partner, class Meet>
void run_rounds(const std::vector<std::size_t>& rounds, std::size_t threads, Work work, Partner partner, Meet meet) {
  struct Item {
    std::size_t done = 0;  // rounds
    bool busy = false, waiting = false, left = false;
  };
  std::vector<Item> items(rounds.size());
  std::mutex guard;
  std::condition_variable changed;
  std::size_t staying = 0;
  bool failed = false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].left = rounds[i] == 0;
    staying += rounds[i] > 0;
  }

  const auto next = [&] {
    std::size_t best = items.size();
    for (std::size_t i = 0; i < items.size(); ++i)
      if (!items[i].busy && !items[i].waiting && !items[i].left &&
          (best == items.size() || items[i].done < items[best].done))
        best = i;
    return best;
  };
  const auto leave = [&](std::size_t i) {
    if (items[i].left) return;
    items[i].left = true;
    --staying;
  };
  const auto go_on = [&](std::size_t i) {
    items[i].waiting = false;
    if (items[i].done == rounds[i]) leave(i);
  };
  const auto worked = [&](std::size_t i, bool stays) {
    Item& item = items[i];
    const std::size_t round = item.done++, other = partner(i, round);
    item.busy = false;
    if (!stays) leave(i);
    if (stays && other != i && !items[other].left) {
      item.waiting = true;
      if (items[other].waiting && items[other].done == item.done) {
        meet(i, other, round);
        go_on(other);
        go_on(i);
      }
    } else if (item.done == rounds[i]) {
      leave(i);
    }
    // Whoever waits for one that has left goes on; it may have been rounds ahead of it.
    for (bool freed = true; freed;) {
      freed = false;
      for (std::size_t j = 0; j < items.size(); ++j)
        if (items[j].waiting && items[partner(j, items[j].done - 1)].left) {
          go_on(j);
          freed = true;
        }
    }
  };

  parallel_for(std::min(std::max<std::size_t>(threads, 1), items.size()), threads, [&](std::size_t, std::size_t) {
    std::unique_lock lock(guard);
    while (staying > 0 && !failed) {
      const std::size_t i = next();
      if (i == items.size()) {
        changed.wait(lock);
        continue;
      }
      items[i].busy = true;
      const std::size_t round = items[i].done;
      lock.unlock();
      try {
        const bool stays = work(i, round);
        lock.lock();
        worked(i, stays);
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        failed = true;
        changed.notify_all();
        throw;
      }
      changed.notify_all();
    }
  });
}

// Without meetings.
template <class Work>
void run_rounds(const std::vector<std::size_t>& rounds, std::size_t threads, Work work) {
  run_rounds(
      rounds, threads, std::move(work), [](std::size_t i, std::size_t) { return i; },
      [](std::size_t, std::size_t, std::size_t) {});
}

}  // namespace fedsel
