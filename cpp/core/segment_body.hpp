// Bodies of the kernels for consistent rows (see layout.hpp): sums of x log2 x over segments of equal weight. Included
// by kernel.cpp only, like kernel_body.hpp.
//
// Logarithms are taken relative to a whole number e0 near log2 of the total N, which costs nothing (it joins the
// constant that is subtracted from the exponent) and cancels from the loss: the multiples of a table's sums are
// +1, -1, -1 and +1, and each counts every record once. All sums stay of the order of N, which saves digits. No clamp
// is needed either: rows are non-negative, and 0 gives 0 times something finite.
#pragma once

#include <bit>

#include "kernel_body.hpp"
#include "screen_body.hpp"

namespace fedsel::body {

template <int N>
FEDSEL_INLINE double add_lanes(const typename Vec<N>::D* sums) {
  typename Vec<N>::D parts[kLanes / N];
  for (std::size_t i = 0; i < kLanes / N; ++i) parts[i] = sums[i];
  for (std::size_t half = kLanes / N / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  typename Vec<N>::D v = parts[0];
  if constexpr (N >= 8) v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
  if constexpr (N == 8) {
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
  } else if constexpr (N == 4) {
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1);
  }
  return v[0] + v[1];
}

// sums += x (log2 x - e0) for two vectors; `offset` is 2^52 + e0.
template <int N>
FEDSEL_INLINE void add_terms(typename Vec<N>::I y0, typename Vec<N>::I y1, typename Vec<N>::D offset,
                             typename Vec<N>::D& sum0, typename Vec<N>::D& sum1) {
  const auto a = split<N>(y0, offset), b = split<N>(y1, offset);
  const typename Vec<N>::D reciprocal = 1.0 / (a.denominator * b.denominator);
  sum0 += join<N>(a, reciprocal * b.denominator);
  sum1 += join<N>(b, reciprocal * a.denominator);
}

FEDSEL_INLINE int exponent_of(std::int32_t total) {
  return total > 0 ? std::bit_width(static_cast<std::uint32_t>(total)) - 1 : 0;
}

// Into the second-level cache: the first holds no more than the rows at work, and lines on their way to it wait in a
// short queue. Fetched there, or with a later hint, rows from memory arrive up to twice as fast.
FEDSEL_INLINE void fetch(const std::int32_t* line) { __builtin_prefetch(line, 0, 2); }

// With `exchange`, the rows are from - minus + plus and are written to `to`; else they are `from`. Where `weights` are
// given, segments of weight 0 are not summed. Meanwhile the two rows `ahead` are fetched into the cache, a line for
// each block: in a burst before the loop they would wait for one another.
template <int N, bool exchange>
FEDSEL_INLINE int segment_sums(const Segment* segments, std::size_t count, const double* weights,
                               const std::int32_t* from, const std::int32_t* minus, const std::int32_t* plus,
                               std::int32_t* to, const std::int32_t* const* ahead, double* sums) {
  using D = typename Vec<N>::D;
  using I = typename Vec<N>::I;
  const auto value = [&](std::size_t c) __attribute__((always_inline)) {
    I v = load<I>(from + c);
    if constexpr (exchange) {
      v = v - load<I>(minus + c) + load<I>(plus + c);
      store(to + c, v);
    }
    return v;
  };
  for (std::size_t c = 0; exchange && c < kLanes; c += N) value(c);  // the block of the total
  const int exponent = exponent_of(exchange ? to[0] : from[0]);
  const D offset = (0x1p52 + exponent) - (D){};
  for (std::size_t g = 0; g < count; ++g) {
    D parts[kLanes / N] = {};
    if (weights && weights[g] == 0.0) {
      for (std::size_t c = segments[g].begin; exchange && c < segments[g].end; c += N) value(c);
    } else {
      for (std::size_t c = segments[g].begin; c < segments[g].end; c += kLanes) {
        if constexpr (exchange) {
          fetch(ahead[0] + c);
          fetch(ahead[1] + c);
        }
        for (std::size_t p = 0; p < kPairs<N>; ++p)
          add_terms<N>(value(c + p * N), value(c + p * N + kLanes / 2), offset, parts[p], parts[p + kPairs<N>]);
      }
    }
    sums[g] = add_lanes<N>(parts);
  }
  return exponent;
}

// Two vectors of lanes at a time, as lane_losses.
template <int N>
FEDSEL_INLINE void segment_lanes(const Segment* segments, std::size_t count, const double* weights, double total_weight,
                                 const std::int32_t* base, const std::int32_t* lanes, double* losses) {
  using D = typename Vec<N>::D;
  using I = typename Vec<N>::I;
  const D offset = (0x1p52 + exponent_of(base[0] + lanes[0])) - (D){};
  for (std::size_t first = 0; first < kLanes / 2; first += N) {
    D loss0 = {}, loss1 = {};
    for (std::size_t g = 0; g < count; ++g) {
      if (weights[g] == 0.0) continue;
      D sum0 = {}, sum1 = {};
      for (std::size_t c = segments[g].begin; c < segments[g].end; ++c) {
        const std::int32_t* cell = lanes + c * kLanes + first;
        add_terms<N>(load<I>(cell) + base[c], load<I>(cell + kLanes / 2) + base[c], offset, sum0, sum1);
      }
      loss0 += weights[g] * sum0;
      loss1 += weights[g] * sum1;
    }
    const I n0 = load<I>(lanes + first) + base[0], n1 = load<I>(lanes + first + kLanes / 2) + base[0];
    D total0 = {}, total1 = {};
    add_terms<N>(n0, n1, offset, total0, total1);
    loss0 = (loss0 + total_weight * total0) / __builtin_convertvector(at_least(n0, 1), D);
    loss1 = (loss1 + total_weight * total1) / __builtin_convertvector(at_least(n1, 1), D);
    store(losses + first, loss0);
    store(losses + first + kLanes / 2, loss1);
  }
}

// The halves of a vector of N floats, as doubles.
template <int N>
FEDSEL_INLINE typename Vec<N / 2>::D low_half(typename FloatVec<N>::F v) {
  typename FloatVec<N / 2>::F half;
  std::memcpy(&half, &v, sizeof half);
  return __builtin_convertvector(half, typename Vec<N / 2>::D);
}

template <int N>
FEDSEL_INLINE typename Vec<N / 2>::D high_half(typename FloatVec<N>::F v) {
  typename FloatVec<N / 2>::F half;
  std::memcpy(&half, reinterpret_cast<const char*>(&v) + sizeof half, sizeof half);
  return __builtin_convertvector(half, typename Vec<N / 2>::D);
}

// The same in single precision, N lanes at a time. Terms are added sixteen at a time in single precision, the rest in
// double; the error, in the notation of screen_body.hpp: a term of proportion p is off by at most
// p (6u (|log2 p| + D + 1) + 2.4e-5), and takes part in at most 16 additions, each off by u times a sum of terms. A
// segment's terms have, for every joint table or margin in it, proportions that sum to 1, hence terms that sum to at
// most log2(cells) + D + 1: so each table or margin is off by at most 22u (log2(cells) + D + 1) + 2.4e-5, times the
// weight of its segment; and the loss is rounded once more.
template <int N>
FEDSEL_INLINE void segment_screen(const Segment* segments, std::size_t count, const double* weights,
                                  double total_weight, const std::int32_t* base, const std::int32_t* lanes,
                                  float origin_log, float* losses) {
  using F = typename FloatVec<N>::F;
  using I = typename FloatVec<N>::I;
  using D = typename Vec<N / 2>::D;
  using Half = typename FloatVec<N / 2>::F;
  const F origin = origin_log - (F){};
  const Reach reach = reach_of(origin_log);
  for (std::size_t first = 0; first < kLanes; first += N) {
    D loss0 = {}, loss1 = {};
    for (std::size_t g = 0; g < count; ++g) {
      if (weights[g] == 0.0) continue;
      D sum0 = {}, sum1 = {};
      for (std::size_t c = segments[g].begin; c < segments[g].end; c += kLanes) {
        F sum = {};
        for (std::size_t i = c; i < c + kLanes; ++i)
          sum += g_term<N>(load<I>(lanes + i * kLanes + first) + base[i], origin);
        sum0 += low_half<N>(sum);
        sum1 += high_half<N>(sum);
      }
      loss0 += weights[g] * sum0;
      loss1 += weights[g] * sum1;
    }
    const I total = load<I>(lanes + first) + base[0];
    const F last = g_term<N>(total, origin), n = __builtin_convertvector(at_least(total, 1), F);
    loss0 = (loss0 + total_weight * low_half<N>(last)) / (low_half<N>(n) * kTermScale);
    loss1 = (loss1 + total_weight * high_half<N>(last)) / (high_half<N>(n) * kTermScale);
    const Half half0 = __builtin_convertvector(loss0, Half), half1 = __builtin_convertvector(loss1, Half);
    F loss;
    std::memcpy(&loss, &half0, sizeof half0);
    std::memcpy(reinterpret_cast<char*>(&loss) + sizeof half0, &half1, sizeof half1);
    const F infinite = __builtin_inff() - (F){};
    store(losses + first, (total < reach.low) | (total > reach.high) ? -infinite : loss);
  }
}

// The loss of one exchanged row in single precision, with the same error: here, too, no more than sixteen terms are
// added before they go to double.
template <int N>
FEDSEL_INLINE double exchange_screen(const Segment* segments, std::size_t count, const double* weights,
                                     double total_weight, const std::int32_t* from, const std::int32_t* minus,
                                     const std::int32_t* plus, std::int32_t* to, const std::int32_t* const* ahead,
                                     float origin_log) {
  using F = typename FloatVec<N>::F;
  using I = typename FloatVec<N>::I;
  using D = typename Vec<N / 2>::D;
  constexpr std::size_t parts = kLanes / N;
  const F origin = origin_log - (F){};
  const Reach reach = reach_of(origin_log);
  const auto value = [&](std::size_t c) __attribute__((always_inline)) {
    const I v = load<I>(from + c) - load<I>(minus + c) + load<I>(plus + c);
    store(to + c, v);
    return v;
  };
  for (std::size_t c = 0; c < kLanes; c += N) value(c);  // the block of the total
  D loss = {};
  for (std::size_t g = 0; g < count; ++g) {
    std::size_t c = segments[g].begin;
    const std::size_t end = segments[g].end;
    if (weights[g] == 0.0) {
      for (; c < end; c += N) value(c);
      continue;
    }
    D segment = {};
    while (c < end) {
      const std::size_t stop = c + 16 * kLanes < end ? c + 16 * kLanes : end;
      F sums[parts] = {};
      for (; c < stop; c += kLanes) {
        fetch(ahead[0] + c);
        fetch(ahead[1] + c);
        for (std::size_t p = 0; p < parts; ++p) sums[p] += g_term<N>(value(c + p * N), origin);
      }
      for (std::size_t p = 0; p < parts; ++p) segment += low_half<N>(sums[p]) + high_half<N>(sums[p]);
    }
    loss += weights[g] * segment;
  }
  const std::int32_t total = to[0];
  if (total < reach.low || total > reach.high) return -__builtin_inf();
  double sum = total_weight * static_cast<double>(g_term<N>(total - (I){}, origin)[0]);
  for (int l = 0; l < N / 2; ++l) sum += loss[l];
  return sum / (static_cast<double>(total) * kTermScale);
}

}  // namespace fedsel::body
