// Bodies of the kernels that bound how much an exchange changes the loss of consistent rows. Included by kernel.cpp
// only, like kernel_body.hpp.
//
// Let x be the current cells, N their total, d and D the changes of both, x' = x + d and N' = N + D. With
// h(u) = (1 + u) ln(1 + u) - u,
//
//     x' log2 x' = x' log2 x + (d + x h(d / x)) / ln 2,   where |h(u) - u^2 / 2| <= |u|^3 / 2 for u >= -1
//
// (the series of h has the coefficients 1 / (n (n - 1)), which sum to 1/2 from n = 3). The weights of the cells are
// such that sum w d = -w_total D, so with A = sum w d log2(x / N), T = sum w d^2 / (2x), E = sum |w| |d|^3 / (2 x^2),
//
//     loss' - loss = w_total log2(N' / N) + (A - D loss + (T - w_total D) / ln 2) / N'   up to E / (N' ln 2).
//
// A federation of many members changes little by a swap: d / x is about 1 / k, E is of third order in it, and all of A,
// T and E is as small as the change itself, so single precision loses nothing. The screening of segment_body.hpp is off
// by as much as a swap among hundreds of members changes.
//
// Cells of x = 0 count as x = 1 in the logarithm, and 1 stands for 1 / (2x): their true part, d ln d - d, is then
// within 2 |d|^3 of d^2 for d >= 1, which is what E adds for them.
#pragma once

#include <cmath>

#include "screen_body.hpp"
#include "segment_body.hpp"

namespace fedsel::body {

// logs = log2(max(x, 1) / N), halves = 1 / (2x), or 1 for x = 0; exact but for one rounding to single precision.
template <int N>
FEDSEL_INLINE void expansion(std::size_t cells, const std::int32_t* row, float* logs, float* halves) {
  using D = typename Vec<N>::D;
  using I = typename Vec<N>::I;
  using F = typename FloatVec<N>::F;
  const D offset = 0x1p52 - (D){};
  const D origin = std::log2(static_cast<double>(row[0])) - (D){};
  for (std::size_t c = 0; c < cells; c += N) {
    const I x = load<I>(row + c);
    const auto part = split<N>(at_least(x, 1), offset);
    const D f = join<N>(part, 1.0 / part.denominator), inverse = 1.0 / part.x;
    const F half = __builtin_convertvector(0.5 * inverse, F);
    store(logs + c, __builtin_convertvector(f * inverse - origin, F));
    store(halves + c, x > 0 ? half : 1.0f - (F){});
  }
}

template <class F>
FEDSEL_INLINE F magnitude(F v) {
  return v < 0.0f ? -v : v;
}

// A, T, E and, for the rounding, sum |w| (|d log2(x / N)| + d^2 / (2x)), while the rows `ahead` are fetched. At most
// sixteen terms are added before they go to double.
template <int N>
FEDSEL_INLINE void exchange_change(const Segment* segments, std::size_t count, const double* weights,
                                   const std::int32_t* minus, const std::int32_t* plus, const float* logs,
                                   const float* halves, const std::int32_t* const* ahead, double* change) {
  using F = typename FloatVec<N>::F;
  using I = typename FloatVec<N>::I;
  using D = typename Vec<N / 2>::D;
  constexpr std::size_t parts = kLanes / N;
  const auto add = [&](D& total, const F& sum)
                       __attribute__((always_inline)) { total += low_half<N>(sum) + high_half<N>(sum); };
  D totals[4] = {};
  for (std::size_t g = 0; g < count; ++g) {
    if (weights[g] == 0.0) continue;
    D first = {}, second = {}, third = {}, size = {};
    for (std::size_t c = segments[g].begin, end = segments[g].end; c < end;) {
      const std::size_t stop = c + 16 * kLanes < end ? c + 16 * kLanes : end;
      F a[parts] = {}, t[parts] = {}, e[parts] = {}, b[parts] = {};
      for (; c < stop; c += kLanes) {
        fetch(ahead[0] + c);
        fetch(ahead[1] + c);
        for (std::size_t p = 0; p < parts; ++p) {
          const std::size_t at = c + p * N;
          const F d = __builtin_convertvector(load<I>(plus + at) - load<I>(minus + at), F);
          const F linear = d * load<F>(logs + at), share = d * load<F>(halves + at), square = d * share;
          a[p] += linear;
          b[p] += magnitude(linear);
          t[p] += square;
          e[p] += magnitude(share) * square;
        }
      }
      for (std::size_t p = 0; p < parts; ++p) {
        add(first, a[p]);
        add(second, t[p]);
        add(third, e[p]);
        add(size, b[p]);
      }
    }
    const double weight = weights[g], absolute = weight < 0.0 ? -weight : weight;
    totals[0] += weight * first;
    totals[1] += weight * second;
    totals[2] += 2.0 * absolute * third;
    totals[3] += absolute * (size + second);
  }
  for (int i = 0; i < 4; ++i) {
    change[i] = 0.0;
    for (int l = 0; l < N / 2; ++l) change[i] += totals[i][l];
  }
}

}  // namespace fedsel::body
