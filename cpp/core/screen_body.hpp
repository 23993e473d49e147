// Body of the screening kernel: losses of sixteen federations in single precision, with a proved bound on the error.
// Included by kernel.cpp only, like kernel_body.hpp.
#pragma once

#include <cmath>

#include "kernel_body.hpp"

namespace fedsel::body {

template <int N>
struct FloatVec {
  typedef float F __attribute__((vector_size(N * 4)));
  typedef std::int32_t I __attribute__((vector_size(N * 4)));
};

// g(y) = y (log2 y - origin) for integers y >= 0; g(0) = 0 because the logarithm of the bits of 0 is finite. As in f of
// kernel_body.hpp, y = 2^e m, t = m - 1 in [sqrt(1/2) - 1, sqrt 2 - 1); log2 m = t P(t) with P of degree 7 (Remez;
// largest error of t P(t): 1.03e-7).
template <int N>
FEDSEL_INLINE typename FloatVec<N>::F g(typename FloatVec<N>::I y, typename FloatVec<N>::F origin) {
  using F = typename FloatVec<N>::F;
  using I = typename FloatVec<N>::I;
  const F x = __builtin_convertvector(y, F);
  const I shifted = (I)x - 0x3f3504f3;
  const F t = (F)((I)x - (shifted & static_cast<std::int32_t>(0xff800000u))) - 1.0f;
  const F e = __builtin_convertvector(shifted >> 23, F) - origin;
  const F u = t * t;
  F even = u * 0.23570964646191594693f + 0.28686887405505919441f;
  F odd = u * -0.14973327508586469396f + -0.24832281126249079382f;
  even = even * u + 0.48093116231595860695f;
  odd = odd * u + -0.36026346169745136202f;
  even = even * u + 1.4426949223774671759f;
  odd = odd * u + -0.7213524873793700757f;
  return x * (e + t * (even + t * odd));
}

// The loss does not change when all logarithms of a table are taken relative to one origin, since the weights of its
// sums are +1, -1, -1, +1 and each counts every record once. With the origin near log2 of the table's total n, all
// logarithms are those of proportions, and the sums stay small; that is what makes single precision enough.
//
// The error, with u = 2^-24, D = kOriginReach the largest |log2 n - origin| (checked below), p = y / n:
//  - a term g(y) / n is p (log2 p + log2 n - origin). Conversion, polynomial and four roundings move it by at most
//    p (6u (|log2 p| + D + 1) + 1.1e-7);
//  - summed over a table of R rows and C columns, row by row, each term takes part in at most R + C additions, each of
//    relative error u. With sum p |log2 p| <= log2(cells): at most (R + C) u (log2(R C) + D + 1);
//  - the same for the row sums (R additions) and the column sums (C additions); totals are whole numbers, exact.
// screening_error adds these, times the weights, with 10 per cent for second-order terms and the last few operations.
constexpr float kOriginReach = 2.0f;

// Where a total is out of reach of the origin, the loss returned is minus infinity: to be evaluated exactly.
template <int N>
FEDSEL_INLINE void screen(const PairTable* tables, std::size_t count, const float* weights, const std::int32_t* base,
                          const std::int32_t* lanes, float origin_log, std::int32_t* scratch, float* losses) {
  using F = typename FloatVec<N>::F;
  using I = typename FloatVec<N>::I;
  const F origin = origin_log - (F){};
  const std::int32_t low = static_cast<std::int32_t>(std::exp2(origin_log - kOriginReach)) + 1;
  const double reach = std::exp2(static_cast<double>(origin_log) + kOriginReach);
  const std::int32_t high = reach < 2147483647.0 ? static_cast<std::int32_t>(reach) : 2147483647;
  for (std::size_t first = 0; first < kLanes; first += N) {
    F loss = {};
    I unsure = {};
    for (std::size_t t = 0; t < count; ++t) {
      const std::size_t rows = tables[t].rows, columns = tables[t].columns;
      const std::int32_t* b = base + tables[t].offset;
      const std::int32_t* cell = lanes + tables[t].offset * kLanes + first;
      for (std::size_t j = 0; j < columns; ++j) store(scratch + j * N, (I){});
      F sum = {};
      I total = {};
      for (std::size_t i = 0; i < rows; ++i) {
        I row = {};
        F row_sum = {};
        std::int32_t* column = scratch;
        for (std::size_t j = 0; j < columns; ++j, ++b, cell += kLanes, column += N) {
          const I y = at_least(load<I>(cell) + *b, 0);
          row += y;
          store(column, load<I>(column) + y);
          row_sum += g<N>(y, origin);
        }
        sum += row_sum - g<N>(row, origin);
        total += row;
      }
      F column_sum = {};
      for (std::size_t j = 0; j < columns; ++j) column_sum += g<N>(load<I>(scratch + j * N), origin);
      unsure |= (total < low) | (total > high);
      const I n = at_least(total, 1);
      loss += weights[t] * ((sum - column_sum + g<N>(n, origin)) / __builtin_convertvector(n, F));
    }
    const F infinite = __builtin_inff() - (F){};
    store(losses + first, unsure ? -infinite : loss);
  }
}

}  // namespace fedsel::body
