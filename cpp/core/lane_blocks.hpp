// Rows of clients, or of sums of clients, transposed sixteen at a time for the lane kernel.
#pragma once

#include <cstring>
#include <vector>

#include "loss_model.hpp"

namespace fedsel {

// Writes the sums of the l-th set of `set_size` clients into lane l, for l < sets; the other lanes are zero. `block`:
// cells x kLanes.
inline void fill_lanes(const LossModel& model, const std::uint32_t* clients, std::size_t set_size, std::size_t sets,
                       std::int32_t* block) {
  std::memset(block, 0, model.cells() * kLanes * sizeof *block);
  for (std::size_t l = 0; l < sets; ++l)
    for (std::size_t i = 0; i < set_size; ++i) {
      const std::int32_t* row = model.row(clients[l * set_size + i]);
      for (std::size_t c = 0; c < model.cells(); ++c) block[c * kLanes + l] += row[c];
    }
}

}  // namespace fedsel
