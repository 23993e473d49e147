// Which joint tables to count so that every requested table can be summed out of one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fedsel {

using VariableSet = std::vector<std::uint32_t>;  // strictly increasing positions

// One joint table that is counted row by row, and the requested sets that are summed out of it.
struct JointTable {
  VariableSet variables;
  std::vector<std::size_t> requests;  // indices into the requested sets, all subsets of `variables`
};

// Greedy cover: counting a row costs one increment a joint table, whatever the number of its variables, so a joint of
// four variables yields six pairs for the price of one. A joint may hold at most `max_cells` cells (it should stay
// near the L1 cache, and summing it out costs O(cells)), unless a requested set alone is larger.
std::vector<JointTable> cover(const std::vector<std::uint32_t>& domain, const std::vector<VariableSet>& requests,
                              std::size_t max_cells);

}  // namespace fedsel
