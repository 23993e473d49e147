#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "rounds.hpp"

using namespace fedsel;

namespace {

std::size_t neighbour(std::size_t i, std::size_t round, std::size_t count) {
  if (i % 2 == round % 2) return i + 1 < count ? i + 1 : i;
  return i > 0 ? i - 1 : i;
}

}  // namespace

TEST_CASE("items work all their rounds in order, and meet between them") {
  for (std::size_t threads : {1, 2, 3, 8})
    for (std::size_t count : {1, 2, 5, 6}) {
      constexpr std::size_t kRounds = 40;
      std::vector<std::vector<std::size_t>> worked(count);
      std::vector<std::uint64_t> value(count);
      for (std::size_t i = 0; i < count; ++i) value[i] = i;
      std::size_t meetings = 0;
      run_rounds(
          std::vector<std::size_t>(count, kRounds), threads,
          [&](std::size_t i, std::size_t round) {
            worked[i].push_back(round);
            value[i] = value[i] * 31 + round;  // what comes out depends on the order of work and meetings
            return true;
          },
          [&](std::size_t i, std::size_t round) { return neighbour(i, round, count); },
          [&](std::size_t one, std::size_t other, std::size_t round) {
            CHECK(worked[one].back() == round);
            CHECK(worked[other].back() == round);
            std::swap(value[one], value[other]);
            ++meetings;
          });
      std::vector<std::uint64_t> expected(count);
      for (std::size_t i = 0; i < count; ++i) expected[i] = i;
      std::size_t due = 0;
      for (std::size_t round = 0; round < kRounds; ++round) {
        for (std::size_t i = 0; i < count; ++i) expected[i] = expected[i] * 31 + round;
        for (std::size_t i = round % 2; i + 1 < count; i += 2, ++due) std::swap(expected[i], expected[i + 1]);
      }
      CHECK(value == expected);
      CHECK(meetings == due);
      for (const auto& rounds : worked) CHECK(rounds.size() == kRounds);
    }
}

TEST_CASE("items that leave early keep nobody waiting") {
  for (std::size_t threads : {1, 2, 4}) {
    std::vector<std::atomic<std::size_t>> worked(5);
    run_rounds(
        {20, 0, 20, 3, 20}, threads,
        [&](std::size_t i, std::size_t round) {
          ++worked[i];
          return !(i == 2 && round == 7);
        },
        [](std::size_t i, std::size_t round) { return neighbour(i, round, 5); },
        [](std::size_t, std::size_t, std::size_t) {});
    CHECK(worked[0] == 20);
    CHECK(worked[1] == 0);
    CHECK(worked[2] == 8);
    CHECK(worked[3] == 3);
    CHECK(worked[4] == 20);
  }
}

TEST_CASE("an item that leaves lets those go on that were ahead and waiting for it") {
  // Item 3 is in the last of its two rounds until item 4 has worked three and waits for it.
  std::vector<std::atomic<std::size_t>> worked(5);
  std::atomic<bool> waited{false};
  run_rounds(
      {4, 4, 4, 2, 4}, 2,
      [&](std::size_t i, std::size_t round) {
        if (i == 3 && round == 1)
          while (worked[4] < 4 && !waited) {  // until item 4 waits for item 3 or is through
            for (int turn = 0; turn < 1000; ++turn) std::this_thread::yield();
            waited = worked[4] >= 3;
          }
        ++worked[i];
        return true;
      },
      [](std::size_t i, std::size_t round) -> std::size_t {
        return i == 4 && round == 2 ? 3 : i;  // item 3 never gets that far
      },
      [](std::size_t, std::size_t, std::size_t) {});
  for (std::size_t i = 0; i < 5; ++i) CHECK(worked[i] == (i == 3 ? 2 : 4));
}

TEST_CASE("what an item throws ends the rounds and is thrown") {
  for (std::size_t threads : {1, 2, 4}) {
    const auto failing = [](std::size_t i, std::size_t round) {
      if (i == 1 && round == 2) throw std::runtime_error("as told");
      return true;
    };
    CHECK_THROWS_WITH_AS(run_rounds({9, 9, 9}, threads, failing), "as told", std::runtime_error);
  }
}
