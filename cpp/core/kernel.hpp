// The inner loops: mutual information of summed pair tables, for one federation or for sixteen at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dispatch.hpp"

namespace fedsel {

constexpr std::size_t kLanes = 16;  // federations evaluated together; also the padding of every table, in cells

constexpr std::size_t padded(std::size_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// A two-way table inside a row of cells. Tables start at multiples of kLanes; the gaps hold zeros.
struct PairTable {
  std::uint32_t rows;
  std::uint32_t columns;
  std::size_t offset;
};

struct Kernels {
  // to[c] = from[c] - minus[c] + plus[c]
  void (*exchange)(std::size_t cells, const std::int32_t* from, const std::int32_t* minus, const std::int32_t* plus,
                   std::int32_t* to);

  // information[t] = mutual information of table t in bits, negative cells counted as 0. `scratch` holds
  // scratch_cells(...) values, `work` padded(count) * (kLanes + 1) and `information` padded(count).
  void (*information)(const PairTable* tables, std::size_t count, const std::int32_t* sums, std::int32_t* scratch,
                      double* work, double* information);

  // losses[l] = sum_t weights[t] * information of table t of the cells base[c] + lanes[c * kLanes + l].
  void (*lane_losses)(const PairTable* tables, std::size_t count, const double* weights, const std::int32_t* base,
                      const std::int32_t* lanes, std::int32_t* scratch, double* losses);

  // The same in single precision, up to screening_error(...) bits; minus infinity where a table's total is not within a
  // factor of four of 2^origin. Twice as fast and more: what is far from the best needs no exact value.
  void (*screen)(const PairTable* tables, std::size_t count, const float* weights, const std::int32_t* base,
                 const std::int32_t* lanes, float origin, std::int32_t* scratch, float* losses);
};

// Largest difference between a loss of `screen` and the exact one, in bits; see screen_body.hpp.
double screening_error(const PairTable* tables, std::size_t count, const double* weights);

// Scratch values needed by both kernels for these tables.
std::size_t scratch_cells(const PairTable* tables, std::size_t count);

const Kernels& kernels(Level level);

}  // namespace fedsel
