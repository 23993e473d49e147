// A uniformly random federation.
#pragma once

#include <algorithm>
#include <numeric>
#include <utility>

#include "federation.hpp"
#include "philox.hpp"

namespace fedsel {

inline Members random_members(std::size_t clients, std::size_t k, Philox& random) {
  Members all(clients);
  std::iota(all.begin(), all.end(), 0u);
  for (std::size_t i = 0; i < k; ++i) std::swap(all[i], all[i + random.below(static_cast<std::uint32_t>(clients - i))]);
  all.resize(k);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace fedsel
