// Every federation whose value under the second-order model is at most a threshold: enumeration with bounds.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "control.hpp"
#include "problem.hpp"
#include "quadratic.hpp"

namespace fedsel {

// The numbers of federations stay 0 where there are 2^64 - 1 or more in all.
struct QuadraticCoverage {
  std::uint64_t enumerated = 0;  // federations whose value was computed
  std::uint64_t bounded = 0;     // federations left out because a bound on their value exceeds the threshold
  std::uint64_t prefixes = 0;    // bounds computed: the work apart from enumeration
  bool complete = false;         // false where it ended early
};

class QuadraticSearch {
 public:
  // Whether the tables of bounds fit into memory.
  static bool fits(const Problem& problem);

  // `reports`: whether federations enumerated or bounded are added to the control's evaluations.
  QuadraticSearch(const Problem& problem, const QuadraticModel& model, std::size_t threads, bool reports = true);

  // Calls found(members, value, worker) once for every federation that keeps the constraints and whose value under the
  // model is at most `threshold` (finite), on `threads` threads, in no particular order; members are increasing. Ends
  // early where found returns false, or where it takes more than `most_prefixes` bounds.
  using Found = std::function<bool(const Members& members, double value, std::size_t worker)>;
  QuadraticCoverage run(double threshold, const Found& found, std::uint64_t most_prefixes, Control& control) const;

 private:
  const Problem& problem_;
  const QuadraticModel& model_;
  std::size_t threads_;
  bool reports_;
};

}  // namespace fedsel
