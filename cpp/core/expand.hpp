// Expansion search: the loss is nearly a ratio of two linear functions of the members, whose minimum is a sort away.
#pragma once

#include "control.hpp"
#include "leaderboard.hpp"
#include "problem.hpp"

namespace fedsel {

struct ExpansionOptions {
  std::size_t random_starts;  // besides the whole pool, federations drawn at random to expand around
  std::size_t keep;
  std::size_t threads;
  std::uint64_t seed;
};

struct ExpansionResult {
  Leaderboard board;
  Members certified;  // a federation that no single swap improves, usually the best; empty if none is known
};

ExpansionResult expand(const Problem& problem, const ExpansionOptions& options, Control& control);

}  // namespace fedsel
