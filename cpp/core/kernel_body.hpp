// Bodies of the kernels, written once with the compiler's vector types and instantiated for each instruction set.
//
// Only kernel.cpp includes this file: it is compiled with -ffp-contract=fast, so a*b+c becomes one fused operation
// where the instruction set has it and two roundings where it has not. Every lane does the same operations in the same
// order whatever the vector width N, hence AVX2 and AVX-512 give the same bits and the plain body differs from them
// by rounding only (below 1e-12 bits).
#pragma once

#include <cstring>

#include "kernel.hpp"

#define FEDSEL_INLINE inline __attribute__((always_inline))

namespace fedsel::body {

template <int N>
struct Vec {
  typedef double D __attribute__((vector_size(N * 8)));
  typedef std::int64_t L __attribute__((vector_size(N * 8)));
  typedef std::uint64_t U __attribute__((vector_size(N * 8)));
  typedef std::int32_t I __attribute__((vector_size(N * 4)));
};

template <class V, class T>
FEDSEL_INLINE V load(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class V, class T>
FEDSEL_INLINE void store(T* p, V v) {
  std::memcpy(p, &v, sizeof v);
}

template <class I>
FEDSEL_INLINE I at_least(I v, std::int32_t bound) {
  const I b = bound - (I){};
  return v > b ? v : b;
}

// Sum of the lanes of an integer vector, by halves.
template <int N>
FEDSEL_INLINE std::int32_t add_lanes(typename Vec<N>::I v) {
  if constexpr (N >= 8) v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
  if constexpr (N == 8) {
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
  } else if constexpr (N == 4) {
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1);
  }
  return v[0] + v[1];
}

// The first r lanes of a vector: load it from kFirst + kLanes - r.
inline constexpr std::int32_t kFirst[2 * kLanes] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

// f(y) = y log2 y for integers y >= 1; f(1) is exactly 0, so clamping at 1 makes every cell <= 0 vanish without a
// branch.
//
// y = 2^e m with m in [sqrt(1/2), sqrt 2): subtracting the bits of sqrt(1/2) leaves e in the exponent field. e becomes
// a double by writing it into the mantissa of 2^52, since AVX2 has no conversion from int64. With s = (m-1)/(m+1),
// log2 m = log2 (1+s)/(1-s) = s Q(s^2), |s| < 0.172, Q the minimax polynomial of degree 5 there (Remez, 60 digits;
// largest error of s Q(s^2): 1.4e-14). A polynomial in m-1 as accurate has degree 16: the division buys ten
// multiplications, and two values share one: 1/a and 1/b are b and a times 1/(ab).
template <int N>
struct Split {
  typename Vec<N>::D x, e, numerator, denominator;
};

// `offset`: 2^52 plus what is to be subtracted from the exponent.
template <int N>
FEDSEL_INLINE Split<N> split(typename Vec<N>::I y, typename Vec<N>::D offset) {
  using D = typename Vec<N>::D;
  using L = typename Vec<N>::L;
  using U = typename Vec<N>::U;
  const D x = __builtin_convertvector(y, D);
  const L shifted = (L)x - 0x3fe6a09e667f3bcdLL;
  const D m = (D)((L)x - (L)((U)shifted & 0xfff0000000000000ULL));
  const D e = (D)(((U)shifted >> 52) | 0x4330000000000000ULL) - offset;
  return {x, e, m - 1.0, m + 1.0};
}

template <int N>
FEDSEL_INLINE typename Vec<N>::D join(const Split<N>& part, typename Vec<N>::D reciprocal) {
  using D = typename Vec<N>::D;
  const D s = part.numerator * reciprocal;
  const D z = s * s;
  D q = z * 0x1.21b2ad697b41fp-2 + 0x1.479533f38ab71p-2;
  q = q * z + 0x1.a61a2fb2bece1p-2;
  q = q * z + 0x1.2776c291fb7bdp-1;
  q = q * z + 0x1.ec709dc53da08p-1;
  q = q * z + 0x1.71547652b8250p+1;
  return part.x * (s * q + part.e);
}

// Vectors are taken in pairs half of kLanes apart, so that the same two values share a division whatever N is.
template <int N>
inline constexpr std::size_t kPairs = kLanes / (2 * N);

// f of two vectors at once.
template <int N>
FEDSEL_INLINE void f(typename Vec<N>::I y0, typename Vec<N>::I y1, typename Vec<N>::D& f0, typename Vec<N>::D& f1) {
  const typename Vec<N>::D offset = 0x1p52 - (typename Vec<N>::D){};
  const auto a = split<N>(y0, offset), b = split<N>(y1, offset);
  const typename Vec<N>::D reciprocal = 1.0 / (a.denominator * b.denominator);
  f0 = join<N>(a, reciprocal * b.denominator);
  f1 = join<N>(b, reciprocal * a.denominator);
}

// sums += sign * f over `count` values (a multiple of kLanes), in kLanes independent sums.
template <int N, int sign>
FEDSEL_INLINE void add_f(const std::int32_t* values, std::size_t count, typename Vec<N>::D* sums) {
  using I = typename Vec<N>::I;
  for (std::size_t c = 0; c < count; c += kLanes)
    for (std::size_t p = 0; p < kPairs<N>; ++p) {
      const std::int32_t* first = values + c + p * N;
      typename Vec<N>::D f0, f1;
      f<N>(at_least(load<I>(first), 1), at_least(load<I>(first + kLanes / 2), 1), f0, f1);
      sums[p] += sign * f0;
      sums[p + kPairs<N>] += sign * f1;
    }
}

template <int N>
FEDSEL_INLINE void exchange(std::size_t cells, const std::int32_t* from, const std::int32_t* minus,
                            const std::int32_t* plus, std::int32_t* to) {
  using I = typename Vec<N>::I;
  for (std::size_t c = 0; c < cells; c += kLanes)
    for (std::size_t p = 0; p < kLanes; p += N)
      store(to + c + p, load<I>(from + c + p) - load<I>(minus + c + p) + load<I>(plus + c + p));
}

template <int N>
FEDSEL_INLINE void information(const PairTable* tables, std::size_t count, const std::int32_t* sums,
                               std::int32_t* scratch, double* work, double* information) {
  using D = typename Vec<N>::D;
  using I = typename Vec<N>::I;
  // Scratch: the total of every table, then the row and column sums of the table in work.
  std::int32_t* totals = scratch;
  std::int32_t* margins = scratch + padded(count);
  double* sums_of_f = work;
  double* partial = work + padded(count);
  for (std::size_t t = count; t < padded(count); ++t) totals[t] = 0, sums_of_f[t] = 0.0;
  for (std::size_t t = 0; t < count; ++t) {
    const std::size_t rows = tables[t].rows, columns = tables[t].columns;
    const std::int32_t* cell = sums + tables[t].offset;
    // Column sums, a vector of columns at a time. A vector may reach past the last column: what it adds there are cells
    // of the next row, and they are cleared below. Reading past the table is safe: rows of cells end in kLanes zeros.
    const std::size_t width = padded(rows + columns);
    std::int32_t* column = margins + rows;
    for (std::size_t j = 0; j < columns; j += N) {
      I sum = {};
      const std::int32_t* p = cell + j;
      for (std::size_t i = 0; i < rows; ++i, p += columns) sum += at_least(load<I>(p), 0);
      store(column + j, sum);
    }
    for (std::size_t i = rows + columns; i < width; ++i) margins[i] = 0;
    std::int32_t total = 0;
    const std::int32_t* p = cell;
    for (std::size_t i = 0; i < rows; ++i, p += columns) {
      I sum = {};
      std::size_t j = 0;
      for (; j + N < columns; j += N) sum += at_least(load<I>(p + j), 0);
      sum += at_least(load<I>(p + j), 0) & load<I>(kFirst + kLanes - (columns - j));
      total += margins[i] = add_lanes<N>(sum);
    }
    totals[t] = total;
    D parts[kLanes / N] = {};
    add_f<N, 1>(cell, padded(rows * columns), parts);
    add_f<N, -1>(margins, width, parts);
    for (std::size_t i = 0; i < kLanes / N; ++i) store(partial + t * kLanes + i * N, parts[i]);
  }
  for (std::size_t t = 0; t < count; ++t) {  // sixteen sums of each table into one, in a fixed order
    double* lane = partial + t * kLanes;
    for (std::size_t half = kLanes / 2; half > 0; half /= 2)
      for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
    sums_of_f[t] = lane[0];
  }
  for (std::size_t block = 0; block < count; block += kLanes)
    for (std::size_t t = block; t < block + kLanes / 2; t += N) {
      const std::size_t u = t + kLanes / 2;
      const I n0 = at_least(load<I>(totals + t), 1), n1 = at_least(load<I>(totals + u), 1);
      D f0, f1;
      f<N>(n0, n1, f0, f1);
      store(information + t, (load<D>(sums_of_f + t) + f0) / __builtin_convertvector(n0, D));
      store(information + u, (load<D>(sums_of_f + u) + f1) / __builtin_convertvector(n1, D));
    }
}

// Two vectors of lanes at a time: enough independent work to hide the polynomial's latency, few enough registers.
template <int N>
FEDSEL_INLINE void lane_losses(const PairTable* tables, std::size_t count, const double* weights,
                               const std::int32_t* base, const std::int32_t* lanes, std::int32_t* scratch,
                               double* losses) {
  using D = typename Vec<N>::D;
  using I = typename Vec<N>::I;
  for (std::size_t first = 0; first < kLanes / 2; first += N) {
    D loss0 = {}, loss1 = {};
    for (std::size_t t = 0; t < count; ++t) {
      const std::size_t rows = tables[t].rows, columns = tables[t].columns;
      const std::int32_t* b = base + tables[t].offset;
      const std::int32_t* cell = lanes + tables[t].offset * kLanes + first;
      for (std::size_t j = 0; j < columns * 2 * N; j += N) store(scratch + j, (I){});
      D sum0 = {}, sum1 = {}, f0, f1;
      I total0 = {}, total1 = {};
      for (std::size_t i = 0; i < rows; ++i) {
        I row0 = {}, row1 = {};
        std::int32_t* column = scratch;
        for (std::size_t j = 0; j < columns; ++j, ++b, cell += kLanes, column += 2 * N) {
          const I x0 = load<I>(cell) + *b, x1 = load<I>(cell + kLanes / 2) + *b;
          const I y0 = at_least(x0, 0), y1 = at_least(x1, 0);
          row0 += y0;
          row1 += y1;
          store(column, load<I>(column) + y0);
          store(column + N, load<I>(column + N) + y1);
          f<N>(at_least(x0, 1), at_least(x1, 1), f0, f1);
          sum0 += f0;
          sum1 += f1;
        }
        f<N>(at_least(row0, 1), at_least(row1, 1), f0, f1);
        sum0 -= f0;
        sum1 -= f1;
        total0 += row0;
        total1 += row1;
      }
      for (std::size_t j = 0; j < columns; ++j) {
        const std::int32_t* column = scratch + j * 2 * N;
        f<N>(at_least(load<I>(column), 1), at_least(load<I>(column + N), 1), f0, f1);
        sum0 -= f0;
        sum1 -= f1;
      }
      total0 = at_least(total0, 1);
      total1 = at_least(total1, 1);
      f<N>(total0, total1, f0, f1);
      loss0 += weights[t] * ((sum0 + f0) / __builtin_convertvector(total0, D));
      loss1 += weights[t] * ((sum1 + f1) / __builtin_convertvector(total1, D));
    }
    store(losses + first, loss0);
    store(losses + first + kLanes / 2, loss1);
  }
}

}  // namespace fedsel::body
