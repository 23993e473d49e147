// Simulated annealing over federations of k clients by single swaps (Kirkpatrick et al. 1983; PCS, algorithm 2).
#pragma once

#include <optional>

#include "control.hpp"
#include "leaderboard.hpp"
#include "problem.hpp"

namespace fedsel {

struct AnnealingOptions {
  std::vector<double> temperatures;  // one a level, in bits
  std::size_t evaluations_per_level;
  std::size_t max_evaluations;  // a chain
  std::size_t chains;
  std::size_t keep;
  std::size_t threads;
  std::uint64_t seed;
  std::vector<Members> initial_states;  // empty, or one a chain: fixed members first, constraints met
  bool screen = true;                   // proposals in single precision first; changes nothing but the time
};

struct Chain {
  Candidate best{0.0, {}};
  std::uint64_t evaluations = 0;
  std::vector<double> trace;  // loss of the current federation at the end of each level
};

struct AnnealingResult {
  Leaderboard board;
  std::vector<Chain> chains;
};

// Every chain has its own random stream: the same seed gives the same result for any number of threads.
AnnealingResult anneal(const Problem& problem, const AnnealingOptions& options, Control& control);

// Replica exchange (parallel tempering; Geyer 1991, Hukushima and Nemoto 1996): a walk at each temperature of a ladder,
// hottest first; after every round neighbours trade temperatures at random, so that what is found hot is refined cold.
// Rounds end together, whatever the number of threads: it does not change the result.
struct TemperingOptions {
  AnnealingOptions
      walk;  // temperatures: the ladder; evaluations_per_level: of a round; one initial state a temperature
  std::size_t rounds;
};

AnnealingResult temper(const Problem& problem, const TemperingOptions& options, Control& control);

}  // namespace fedsel
