// The two loops over bit sets that subgroup search spends its time in, one set of bodies an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dispatch.hpp"

namespace fedsel {

inline constexpr std::size_t kCoverTile = 4;  // covers that share one reading of a condition

struct BitKernels {
  // counts[i] += bits set in covers[i] & condition, for i below kCoverTile (or one cover only).
  void (*count_tile)(const std::uint64_t* const* covers, const std::uint64_t* condition, std::size_t words,
                     std::uint32_t* counts);
  void (*count_one)(const std::uint64_t* cover, const std::uint64_t* condition, std::size_t words,
                    std::uint32_t* counts);
  // Sets bit r of `bits` where codes[r] - first <= span (unsigned), for 64 * words rows; other bits stay.
  void (*range_narrow)(const std::uint8_t* codes, std::uint8_t first, std::uint8_t span, std::size_t words,
                       std::uint64_t* bits);
  void (*range_wide)(const std::uint32_t* codes, std::uint32_t first, std::uint32_t span, std::size_t words,
                     std::uint64_t* bits);
};

// The kernels of a level this CPU supports.
const BitKernels& bit_kernels(Level level);

}  // namespace fedsel
