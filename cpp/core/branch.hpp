// Proof of an optimum by branch and bound, or how far from one the bounds end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "control.hpp"
#include "leaderboard.hpp"
#include "problem.hpp"

namespace fedsel {

struct BranchOptions {
  Members known;             // the best federation known
  std::vector<double> gaps;  // tried in this order, falling, in bits; the last may be 0, the proof
  std::uint64_t most_nodes;  // subproblems bounded, in all
  std::size_t keep;
  std::size_t threads;
  // What a subproblem may take before it is split, a few times as long as bounding it: prefixes bounded, federations
  // evaluated.
  std::uint64_t most_prefixes = 300'000;
  std::uint64_t most_evaluated = 2'500;
};

struct BranchResult {
  bool applies = false;  // false where tables do not agree, a client has no records or there are too many of them
  bool optimal = false;  // every federation was evaluated or proved to be worse than the best on the board
  double bound = -std::numeric_limits<double>::infinity();  // no federation has a lower loss, in bits
  std::uint64_t nodes = 0;                                  // subproblems bounded
  std::uint64_t evaluated = 0;                              // federations evaluated exactly
  Leaderboard board;                                        // the known federation, and what was evaluated

  explicit BranchResult(std::size_t keep) : board(keep) {}
};

// For each gap, every federation whose lower bound (minorant.hpp) is at most the best known loss minus the gap is
// evaluated. A subproblem that leaves too many of them is split on one client: in, or out. If none has a lower loss,
// that loss minus the gap is a lower bound on all. Same result for any number of threads, unless the control stops it.
BranchResult branch(const Problem& problem, const BranchOptions& options, Control& control);

}  // namespace fedsel
