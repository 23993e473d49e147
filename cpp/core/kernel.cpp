#include "kernel.hpp"

#include <algorithm>
#include <cmath>

#include "change_body.hpp"
#include "kernel_body.hpp"
#include "screen_body.hpp"
#include "segment_body.hpp"

namespace fedsel {
namespace {

// One set of wrappers an instruction set: the attribute makes the compiler generate the inlined body for it.
#define FEDSEL_WRAPPERS(LEVEL, TARGET, N)                                                                              \
  TARGET void exchange_##LEVEL(std::size_t cells, const std::int32_t* from, const std::int32_t* minus,                 \
                               const std::int32_t* plus, std::int32_t* to) {                                           \
    body::exchange<N>(cells, from, minus, plus, to);                                                                   \
  }                                                                                                                    \
  TARGET void information_##LEVEL(const PairTable* tables, std::size_t count, const std::int32_t* sums,                \
                                  std::int32_t* scratch, double* work, double* information) {                          \
    body::information<N>(tables, count, sums, scratch, work, information);                                             \
  }                                                                                                                    \
  TARGET void lane_losses_##LEVEL(const PairTable* tables, std::size_t count, const double* weights,                   \
                                  const std::int32_t* base, const std::int32_t* lanes, std::int32_t* scratch,          \
                                  double* losses) {                                                                    \
    body::lane_losses<N>(tables, count, weights, base, lanes, scratch, losses);                                        \
  }                                                                                                                    \
  TARGET void screen_##LEVEL(const PairTable* tables, std::size_t count, const float* weights,                         \
                             const std::int32_t* base, const std::int32_t* lanes, float origin, std::int32_t* scratch, \
                             float* losses) {                                                                          \
    body::screen<2 * N>(tables, count, weights, base, lanes, origin, scratch, losses);                                 \
  }                                                                                                                    \
  TARGET int segment_sums_##LEVEL(const Segment* segments, std::size_t count, const double* weights,                   \
                                  const std::int32_t* row, double* sums) {                                             \
    return body::segment_sums<N, false>(segments, count, weights, row, nullptr, nullptr, nullptr, nullptr, sums);      \
  }                                                                                                                    \
  TARGET int exchange_sums_##LEVEL(const Segment* segments, std::size_t count, const double* weights,                  \
                                   const std::int32_t* from, const std::int32_t* minus, const std::int32_t* plus,      \
                                   std::int32_t* to, const std::int32_t* const* ahead, double* sums) {                 \
    return body::segment_sums<N, true>(segments, count, weights, from, minus, plus, to, ahead, sums);                  \
  }                                                                                                                    \
  TARGET void segment_lanes_##LEVEL(const Segment* segments, std::size_t count, const double* weights,                 \
                                    double total_weight, const std::int32_t* base, const std::int32_t* lanes,          \
                                    double* losses) {                                                                  \
    body::segment_lanes<N>(segments, count, weights, total_weight, base, lanes, losses);                               \
  }                                                                                                                    \
  TARGET void segment_screen_##LEVEL(const Segment* segments, std::size_t count, const double* weights,                \
                                     double total_weight, const std::int32_t* base, const std::int32_t* lanes,         \
                                     float origin, float* losses) {                                                    \
    body::segment_screen<2 * N>(segments, count, weights, total_weight, base, lanes, origin, losses);                  \
  }                                                                                                                    \
  TARGET double exchange_screen_##LEVEL(const Segment* segments, std::size_t count, const double* weights,             \
                                        double total_weight, const std::int32_t* from, const std::int32_t* minus,      \
                                        const std::int32_t* plus, std::int32_t* to, const std::int32_t* const* ahead,  \
                                        float origin) {                                                                \
    return body::exchange_screen<2 * N>(segments, count, weights, total_weight, from, minus, plus, to, ahead, origin); \
  }                                                                                                                    \
  TARGET void expansion_##LEVEL(std::size_t cells, const std::int32_t* row, float* logs, float* halves) {              \
    body::expansion<N>(cells, row, logs, halves);                                                                      \
  }                                                                                                                    \
  TARGET void exchange_change_##LEVEL(const Segment* segments, std::size_t count, const double* weights,               \
                                      const std::int32_t* minus, const std::int32_t* plus, const float* logs,          \
                                      const float* halves, const std::int32_t* const* ahead, double* change) {         \
    body::exchange_change<2 * N>(segments, count, weights, minus, plus, logs, halves, ahead, change);                  \
  }                                                                                                                    \
  constexpr Kernels kernels_##LEVEL{exchange_##LEVEL,      information_##LEVEL,    lane_losses_##LEVEL,                \
                                    screen_##LEVEL,        segment_sums_##LEVEL,   exchange_sums_##LEVEL,              \
                                    segment_lanes_##LEVEL, segment_screen_##LEVEL, exchange_screen_##LEVEL,            \
                                    expansion_##LEVEL,     exchange_change_##LEVEL};

FEDSEL_WRAPPERS(plain, , 2)
#if defined(__x86_64__) && defined(__GNUC__)
FEDSEL_WRAPPERS(avx2, __attribute__((target("avx2,fma"))), 4)
FEDSEL_WRAPPERS(avx512, __attribute__((target("avx512f,avx512dq,avx512vl,fma"))), 8)
#endif
#undef FEDSEL_WRAPPERS

}  // namespace

std::size_t scratch_cells(const PairTable* tables, std::size_t count) {
  std::size_t margins = 0, columns = 0;
  for (std::size_t t = 0; t < count; ++t) {
    margins = std::max(margins, padded(tables[t].rows + tables[t].columns) + kLanes);
    columns = std::max<std::size_t>(columns, tables[t].columns);
  }
  return std::max(padded(count) + margins, columns * kLanes);
}

double screening_error(const PairTable* tables, std::size_t count, const double* weights) {
  constexpr double u = 0x1p-24, reach = body::kOriginReach + 1.0, polynomial = 2.4e-5;
  double error = 0.0, scale = 0.0;
  for (std::size_t t = 0; t < count; ++t) {
    const double rows = tables[t].rows, columns = tables[t].columns;
    const auto part = [&](double cells, double additions) {
      return (6.0 + additions) * u * (std::log2(cells) + reach) + polynomial;
    };
    const double weight = std::abs(weights[t]);
    error += weight * (part(rows * columns, rows + columns) + part(rows, rows) + part(columns, columns) + part(1, 1));
    scale += weight * std::log2(std::min(rows, columns) + 1.0);
  }
  // The weighted sum over the tables itself is rounded `count` times, and each weight and product once.
  return 1.1 * (error + static_cast<double>(count + 2) * u * scale);
}

double segment_screening_error(double cells) {
  constexpr double u = 0x1p-24, reach = body::kOriginReach + 1.0, polynomial = 2.4e-5;
  return 22.0 * u * (std::log2(cells) + reach) + polynomial;
}

const Kernels& kernels(Level level) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (level == Level::avx512) return kernels_avx512;
  if (level == Level::avx2) return kernels_avx2;
#endif
  (void)level;
  return kernels_plain;
}

}  // namespace fedsel
