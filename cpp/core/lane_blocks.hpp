// Rows of clients, or of sums of clients, transposed sixteen at a time for the lane kernel.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "loss_model.hpp"

namespace fedsel {

// Writes the sums of the l-th set of `set_size` clients into lane l, for l < sets; the other lanes are zero. `block`:
// cells x kLanes.
inline void fill_lanes(const LossModel& model, const std::uint32_t* clients, std::size_t set_size, std::size_t sets,
                       std::int32_t* block) {
  constexpr std::size_t kStrip = 64;  // cells at a time: they stay in the first-level cache until all lanes are written
  for (std::size_t begin = 0; begin < model.cells(); begin += kStrip) {
    const std::size_t end = std::min(begin + kStrip, model.cells());
    std::memset(block + begin * kLanes, 0, (end - begin) * kLanes * sizeof *block);
    for (std::size_t l = 0; l < sets; ++l)
      for (std::size_t i = 0; i < set_size; ++i) {
        const std::int32_t* row = model.row(clients[l * set_size + i]);
        for (std::size_t c = begin; c < end; ++c) block[c * kLanes + l] += row[c];
      }
  }
}

}  // namespace fedsel
