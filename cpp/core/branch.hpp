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

// A subproblem: federations of the fixed clients and some of the free ones.
struct BranchNode {
  Members fixed, free;
};

// How far branch and bound has come: all it takes to go on.
struct BranchState {
  bool applies = false;   // false where tables do not agree, a client has no records or there are too many of them
  bool finished = false;  // nothing is left to do, or it would take too many subproblems
  bool optimal = false;   // every federation was evaluated or proved to have no lower loss than the best on the board
  double bound = -std::numeric_limits<double>::infinity();  // no federation has a lower loss, in bits
  std::uint64_t nodes = 0;                                  // subproblems bounded
  std::uint64_t evaluated = 0;                              // federations evaluated exactly
  std::size_t gap = 0;                                      // position of the one that is tried
  double threshold = 0.0;                                   // bits; the best known loss minus that gap, when it began
  Members likely;                                           // the best federation when the current level began
  std::vector<BranchNode> open, next, closed;               // of this level; their parts; closed at this threshold
  Leaderboard board;                                        // the known federation, and what was evaluated

  explicit BranchState(std::size_t keep) : board(keep) {}
};

// For each gap, every federation whose lower bound (minorant.hpp) is at most the best known loss minus the gap is
// evaluated. A subproblem that leaves too many of them is split on one client: in, or out. If none has a lower loss,
// that loss minus the gap is a lower bound on all.
BranchState begin_branch(const Problem& problem, const BranchOptions& options);

// Bounds at most so many of the open subproblems, on `threads` threads. How the work is cut into steps, and the number
// of threads, do not change the result. Where the control stops it, what was evaluated is on the board, and the state
// is otherwise that before the step.
void advance_branch(const Problem& problem, const BranchOptions& options, std::size_t most, BranchState& state,
                    Control& control);

// All of it, unless the control stops it.
BranchState branch(const Problem& problem, const BranchOptions& options, Control& control);

}  // namespace fedsel
