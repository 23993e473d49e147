// What the tests of searches share: optima by brute force, a schedule, constraints.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "anneal.hpp"
#include "made_model.hpp"

namespace made {

constexpr double kForever = std::numeric_limits<double>::infinity();

inline Candidate brute_force(const made::Pool& pool, std::size_t k) {
  Candidate best{kForever, {}};
  for (std::uint32_t bits = 0; bits < (1u << pool.clients); ++bits) {
    if (static_cast<std::size_t>(__builtin_popcount(bits)) != k) continue;
    Members members;
    for (std::uint32_t c = 0; c < pool.clients; ++c)
      if (bits >> c & 1) members.push_back(c);
    const double loss = made::loss(pool, members);
    if (loss < best.loss) best = {loss, members};
  }
  return best;
}

inline AnnealingOptions annealing(std::size_t threads) {
  std::vector<double> temperatures;
  for (double t = 0.1; t > 1e-4; t *= 0.9) temperatures.push_back(t);
  return {temperatures, 20, std::numeric_limits<std::size_t>::max(), 4, 5, threads, 42, {}};
}

// Two quotas, a budget and a floor; client 0 in, client 1 out.
inline Problem constrained(const LossModel& model, std::size_t k) {
  const auto n = static_cast<std::uint32_t>(model.clients());
  LinearConstraint odd, cost, records;
  for (std::uint32_t client = 0; client < n; ++client) {
    odd.amounts.push_back(client % 2);
    cost.amounts.push_back(client * 3 % 7);
    records.amounts.push_back(100 + client * 37 % 50);
  }
  odd.lower = 2;
  odd.upper = 2;
  cost.upper = 15;
  records.lower = 480;
  Members free, fallback;
  for (std::uint32_t client = 2; client < n; ++client) free.push_back(client);
  // Any federation that meets them will do as the fallback.
  for (std::uint32_t bits = 0; bits < (1u << n) && fallback.empty(); ++bits) {
    if (!(bits & 1) || (bits & 2) || static_cast<std::size_t>(__builtin_popcount(bits)) != k) continue;
    std::int64_t a = 0, b = 0, c = 0;
    for (std::uint32_t client = 0; client < n; ++client)
      if (bits >> client & 1) a += odd.amounts[client], b += cost.amounts[client], c += records.amounts[client];
    if (a != 2 || b > 15 || c < 480) continue;
    for (std::uint32_t client = 0; client < n; ++client)
      if (bits >> client & 1) fallback.push_back(client);
  }
  REQUIRE_FALSE(fallback.empty());
  return Problem(model, k, {0}, free, {odd, cost, records}, fallback);
}

inline bool meets(const Problem& problem, const Members& members) {
  bool has_fixed = false;
  for (auto client : members) {
    if (client == 1) return false;
    has_fixed = has_fixed || client == 0;
  }
  return has_fixed && Balance(problem, members).violation() == 0.0;
}

}  // namespace made
