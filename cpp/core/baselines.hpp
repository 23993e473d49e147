// Simple searches to compare with: forward greedy, and steepest descent from random starts.
#pragma once

#include "control.hpp"
#include "leaderboard.hpp"
#include "problem.hpp"

namespace fedsel {

struct SimpleResult {
  Leaderboard board;
  Members certified;  // as in ExpansionResult
};

// Adds, k times, the client that gives the lowest loss (among those that break no upper bound, if any). Members that
// still miss a lower bound are repaired by swaps.
SimpleResult greedy(const Problem& problem, std::size_t keep, std::uint64_t seed, Control& control);

// Steepest swap descent from each start; without starts, from `random_starts` random ones.
SimpleResult descend(const Problem& problem, const std::vector<Members>& starts, std::size_t random_starts,
                     std::size_t keep, std::size_t threads, std::uint64_t seed, Control& control);

}  // namespace fedsel
