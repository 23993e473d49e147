// The model certificate: every federation enumerated or bounded under the second-order model, and all inside the
// model's error band evaluated exactly. Strong evidence of an optimum, no proof: the band is measured, not derived.
#pragma once

#include <cstdint>

#include "control.hpp"
#include "leaderboard.hpp"
#include "problem.hpp"

namespace fedsel {

struct CertifyOptions {
  Members known;                // the best federation known
  std::size_t sample;           // federations the error is measured on: so many at random, so many of the model's best
  std::uint64_t most;           // federations evaluated exactly before the band counts as too wide
  std::uint64_t most_prefixes;  // bounds computed in a pass before it counts as too long
  std::size_t keep;
  std::size_t threads;
  std::uint64_t seed;
};

enum class CertifyOutcome { certified, too_wide, too_long, stopped };

struct CertifyResult {
  CertifyOutcome outcome = CertifyOutcome::stopped;
  Leaderboard board;  // exact losses of what was evaluated in the last pass; the known federation if none was
  std::uint64_t enumerated = 0;                 // federations whose model value was computed in the last pass
  std::uint64_t bounded = 0;                    // federations left out by a bound in the last pass
  std::uint64_t prefixes = 0;                   // bounds computed in the last pass
  std::uint64_t rechecked = 0;                  // federations evaluated exactly in the last pass
  std::size_t compared = 0;                     // of the model's best federations, how many measured its error
  double random_error = 0.0, best_error = 0.0;  // largest |model - loss| among each, in bits
  double band = 0.0;                            // twice the larger one

  explicit CertifyResult(std::size_t keep) : board(keep) {}
};

// Throws std::invalid_argument where the pool is too large for the model. Same result for any number of threads.
CertifyResult certify(const Problem& problem, const CertifyOptions& options, Control& control);

}  // namespace fedsel
