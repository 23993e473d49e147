// Simulated annealing under the second-order model: a swap costs nanoseconds. What the chains find is polished and
// judged by the exact loss.
#pragma once

#include "anneal.hpp"

namespace fedsel {

struct QuadraticAnnealingResult {
  Leaderboard board;  // exact losses
  Members certified;  // as in ExpansionResult
};

// Options as for anneal; evaluations under the model count like exact ones. Throws std::invalid_argument where the pool
// is too large for the model. The same seed gives the same result for any number of threads.
QuadraticAnnealingResult anneal_quadratic(const Problem& problem, const AnnealingOptions& options, Control& control);

}  // namespace fedsel
