// Descent by exchanges of several members at once: to a federation that none of up to r improves.
#pragma once

#include "control.hpp"
#include "leaderboard.hpp"
#include "problem.hpp"

namespace fedsel {

struct ExchangeResult {
  Leaderboard board;
  Members optimal;  // increasing; no exchange of up to `size` members improves it; empty if the control stopped it
};

// From `start`, which must meet the constraints. Exchanges of r members are enumerated, C(k, r) C(outsiders, r) of
// them, from r = 1 to `size` and again from 1 after every improvement. Same result for any number of threads.
ExchangeResult descend_by_exchanges(const Problem& problem, const Members& start, std::size_t size, std::size_t keep,
                                    std::size_t threads, Control& control);

}  // namespace fedsel
