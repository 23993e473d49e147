// Every federation that a problem allows, evaluated: the proof of an optimum.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "control.hpp"
#include "leaderboard.hpp"
#include "problem.hpp"

namespace fedsel {

// Number of subsets of size k, saturating at 2^64 - 1.
std::uint64_t binomial(std::uint64_t n, std::uint64_t k);

struct EnumerationResult {
  Leaderboard board;
  bool complete;
};

// Which part of an enumeration: blocks of federations, in the order they are taken.
struct BlockRange {
  std::uint64_t first = 0;
  std::uint64_t last = std::numeric_limits<std::uint64_t>::max();  // one behind, or more
};

// Blocks of all federations of a problem.
std::uint64_t enumeration_blocks(const Problem& problem);

// Adds to the board every federation that consists of one of the bases and `choices` of the free clients (increasing;
// none in a base) and keeps the constraints; true unless the control stopped it. Same result for any number of threads.
bool enumerate_completions(const Problem& problem, const std::vector<Members>& bases, const Members& free,
                           std::size_t choices, std::size_t threads, Control& control, Leaderboard& board,
                           BlockRange range = {});

// The result is complete, as far as the range goes, unless the control stopped it. Same result for any number of
// threads. `known`: federations to begin with.
EnumerationResult enumerate(const Problem& problem, std::size_t keep, std::size_t threads, Control& control,
                            BlockRange range = {}, const std::vector<Candidate>& known = {});

}  // namespace fedsel
