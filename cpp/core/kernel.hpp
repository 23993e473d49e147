// The inner loops: the loss of summed pair tables, for one federation or for sixteen at once.
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

// Consecutive cells of a consistent row that have the same weight in the loss; bounds are multiples of kLanes.
struct Segment {
  std::size_t begin;
  std::size_t end;
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

  // The rest is for consistent rows (see layout.hpp), whose first cell is the total N.

  // sums[g] = sum over segment g of x (log2 x - e0), and returns e0 = floor(log2 N), 0 for N = 0. Where `weights` are
  // given, segments of weight 0 may be left out.
  int (*segment_sums)(const Segment* segments, std::size_t count, const double* weights, const std::int32_t* row,
                      double* sums);

  // exchange and segment_sums of the new row in one pass, while the two rows `ahead` are fetched into the cache.
  int (*exchange_sums)(const Segment* segments, std::size_t count, const double* weights, const std::int32_t* from,
                       const std::int32_t* minus, const std::int32_t* plus, std::int32_t* to,
                       const std::int32_t* const* ahead, double* sums);

  // losses[l] = (total_weight N log2 N + sum_g weights[g] sum over segment g of x log2 x) / N of the cells
  // base[c] + lanes[c * kLanes + l]; 0 for N = 0.
  void (*segment_lanes)(const Segment* segments, std::size_t count, const double* weights, double total_weight,
                        const std::int32_t* base, const std::int32_t* lanes, double* losses);

  // The same in single precision, up to an error bounded as segment_body.hpp says; minus infinity where N is not within
  // a factor of four of 2^origin.
  void (*segment_screen)(const Segment* segments, std::size_t count, const double* weights, double total_weight,
                         const std::int32_t* base, const std::int32_t* lanes, float origin, float* losses);

  // exchange in one pass with the loss of the new row in single precision, as segment_screen; the rest as
  // exchange_sums.
  double (*exchange_screen)(const Segment* segments, std::size_t count, const double* weights, double total_weight,
                            const std::int32_t* from, const std::int32_t* minus, const std::int32_t* plus,
                            std::int32_t* to, const std::int32_t* const* ahead, float origin);

  // What an exchange changes, to second order; see change_body.hpp. `expansion` takes up the cells before it, and
  // `exchange_change` gives four sums from which a bound on the loss follows.
  void (*expansion)(std::size_t cells, const std::int32_t* row, float* logs, float* halves);
  void (*exchange_change)(const Segment* segments, std::size_t count, const double* weights, const std::int32_t* minus,
                          const std::int32_t* plus, const float* logs, const float* halves,
                          const std::int32_t* const* ahead, double* change);
};

// Largest difference between the exact and the screened sums of a table or margin of so many cells, of weight 1, in a
// segment; in bits.
double segment_screening_error(double cells);

// Largest difference between a loss of `screen` and the exact one, in bits; see screen_body.hpp.
double screening_error(const PairTable* tables, std::size_t count, const double* weights);

// Scratch values needed by both kernels for these tables.
std::size_t scratch_cells(const PairTable* tables, std::size_t count);

const Kernels& kernels(Level level);

}  // namespace fedsel
