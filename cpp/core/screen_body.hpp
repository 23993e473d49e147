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

// g(y) = 2^23 y (log2 y - origin) for integers y >= 0; g(0) = 0 because the logarithm of the bits of 0 is finite. As a
// float, y = 2^e (1 + t), 0 <= t < 1, and its bits read as an integer are 2^23 (e + 127 + t): a first logarithm for one
// conversion. The rest, log2(1 + t) - t, is a polynomial of degree 5 (Remez; largest error 1.26e-5, of the order of
// what rounding does to a sum). The factor 2^23 saves a multiplication; whoever adds terms divides by it in the end.
constexpr float kTermScale = 0x1p23f;

template <int N>
FEDSEL_INLINE typename FloatVec<N>::F g_term(typename FloatVec<N>::I y, typename FloatVec<N>::F origin) {
  using F = typename FloatVec<N>::F;
  using I = typename FloatVec<N>::I;
  const F x = __builtin_convertvector(y, F);
  const F first = __builtin_convertvector((I)x, F) - (origin + 127.0f) * kTermScale;
  const F t = (F)(((I)x & 0x007fffff) | 0x3f800000) - 1.0f;
  const F u = t * t;
  F even = u * (-0.192195639014f * kTermScale) + -0.707992672920f * kTermScale;
  F odd = u * (0.044873610139f * kTermScale) + 0.413630127907f * kTermScale;
  even = even * u + first;  // the polynomial's constant, 1.25e-5 for every term, joins the origin
  odd = odd * u + 0.441684544086f * kTermScale;
  return x * (even + t * odd);
}

// The loss does not change when all logarithms of a table are taken relative to one origin, since the weights of its
// sums are +1, -1, -1, +1 and each counts every record once. With the origin near log2 of the table's total n, all
// logarithms are those of proportions, and the sums stay small; that is what makes single precision enough.
//
// The error, with u = 2^-24, D = kOriginReach the largest |log2 n - origin| (checked below), p = y / n:
//  - a term g(y) / (2^23 n) is p (log2 p + log2 n - origin). Conversions, polynomial and roundings move it by at most
//    p (6u (|log2 p| + D + 1) + 2.4e-5): 1.26e-5 from the polynomial, 160u from the conversion of the bits;
//  - summed over a table of R rows and C columns, row by row, each term takes part in at most R + C additions, each of
//    relative error u. With sum p |log2 p| <= log2(cells): at most (R + C) u (log2(R C) + D + 1);
//  - the same for the row sums (R additions) and the column sums (C additions); totals are whole numbers, exact.
// screening_error adds these, times the weights, with 10 per cent for second-order terms and the last few operations.
constexpr float kOriginReach = 2.0f;

// Totals that the origin is good for.
struct Reach {
  std::int32_t low, high;
};

FEDSEL_INLINE Reach reach_of(float origin_log) {
  const double high = std::exp2(static_cast<double>(origin_log) + kOriginReach);
  return {static_cast<std::int32_t>(std::exp2(origin_log - kOriginReach)) + 1,
          high < 2147483647.0 ? static_cast<std::int32_t>(high) : 2147483647};
}

// Where a total is out of reach of the origin, the loss returned is minus infinity: to be evaluated exactly.
template <int N>
FEDSEL_INLINE void screen(const PairTable* tables, std::size_t count, const float* weights, const std::int32_t* base,
                          const std::int32_t* lanes, float origin_log, std::int32_t* scratch, float* losses) {
  using F = typename FloatVec<N>::F;
  using I = typename FloatVec<N>::I;
  const F origin = origin_log - (F){};
  const Reach reach = reach_of(origin_log);
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
          row_sum += g_term<N>(y, origin);
        }
        sum += row_sum - g_term<N>(row, origin);
        total += row;
      }
      F column_sum = {};
      for (std::size_t j = 0; j < columns; ++j) column_sum += g_term<N>(load<I>(scratch + j * N), origin);
      unsure |= (total < reach.low) | (total > reach.high);
      const I n = at_least(total, 1);
      loss += weights[t] * ((sum - column_sum + g_term<N>(n, origin)) / __builtin_convertvector(n, F));
    }
    const F infinite = __builtin_inff() - (F){};
    store(losses + first, unsure ? -infinite : loss * (1.0f / kTermScale));
  }
}

}  // namespace fedsel::body
