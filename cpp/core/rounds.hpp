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
  // Whoever has worked ahead and waits for an item at a round that it will not reach goes on without.
  const auto leave = [&](std::size_t first) {
    std::vector<std::size_t> leaving{first};
    while (!leaving.empty()) {
      const std::size_t gone = leaving.back();
      leaving.pop_back();
      if (items[gone].left) continue;
      items[gone].left = true;
      --staying;
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (!items[i].waiting || partner(i, items[i].done - 1) != gone) continue;
        items[i].waiting = false;
        if (items[i].done == rounds[i]) leaving.push_back(i);
      }
    }
  };
  const auto worked = [&](std::size_t i, bool stays) {
    Item& item = items[i];
    const std::size_t round = item.done++, other = partner(i, round);
    item.busy = false;
    if (!stays) leave(i);
    if (other != i) {
      Item& met = items[other];
      if (met.waiting && met.done == item.done) {
        if (stays) meet(i, other, round);
        met.waiting = false;
        if (met.done == rounds[other]) leave(other);
      } else if (stays && !met.left) {
        item.waiting = true;
      }
    }
    if (!item.waiting && item.done == rounds[i]) leave(i);
  };

  parallel_for(std::min(std::max<std::size_t>(threads, 1), items.size()), threads, [&](std::size_t, std::size_t) {
    std::unique_lock lock(guard);
    while (staying > 0) {
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
        staying = 0;
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
