// The arithmetic limit of the loss: sums of x log2 x over 32-bit counts that stay in the L1 cache, written with
// intrinsics. The arithmetic is that of cpp/core/kernel_body.hpp (a division shared by two vectors, a polynomial of
// degree 5 in s^2), without anything else a search must do: no rows of clients, no sums written back, no segments.
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace {

constexpr std::size_t kBlock = 1024;  // values, 4 KB: a small part of any L1 cache
alignas(64) std::int32_t values[kBlock];

constexpr double kQ[] = {0x1.21b2ad697b41fp-2, 0x1.479533f38ab71p-2, 0x1.a61a2fb2bece1p-2,
                         0x1.2776c291fb7bdp-1, 0x1.ec709dc53da08p-1, 0x1.71547652b8250p+1};
constexpr long long kHalf = 0x3fe6a09e667f3bcdLL;  // bits of sqrt(1/2)
constexpr long long kExponent = static_cast<long long>(0xfff0000000000000ULL);
constexpr long long kMagic = 0x4330000000000000LL;  // bits of 2^52

#define AVX2 __attribute__((target("avx2,fma"), always_inline)) inline
#define AVX512 __attribute__((target("avx512f,avx512dq,avx512vl"), always_inline)) inline

struct Part4 {
  __m256d x, e, numerator, denominator;
};

AVX2 Part4 split4(const std::int32_t* p) {
  const __m256d x = _mm256_cvtepi32_pd(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i bits = _mm256_castpd_si256(x);
  const __m256i shifted = _mm256_sub_epi64(bits, _mm256_set1_epi64x(kHalf));
  const __m256d m =
      _mm256_castsi256_pd(_mm256_sub_epi64(bits, _mm256_and_si256(shifted, _mm256_set1_epi64x(kExponent))));
  const __m256d e = _mm256_castsi256_pd(_mm256_or_si256(_mm256_srli_epi64(shifted, 52), _mm256_set1_epi64x(kMagic)));
  const __m256d one = _mm256_set1_pd(1.0);
  return {x, _mm256_sub_pd(e, _mm256_set1_pd(0x1p52)), _mm256_sub_pd(m, one), _mm256_add_pd(m, one)};
}

AVX2 __m256d add4(const Part4& part, __m256d reciprocal, __m256d sum) {
  const __m256d s = _mm256_mul_pd(part.numerator, reciprocal), z = _mm256_mul_pd(s, s);
  __m256d q = _mm256_set1_pd(kQ[0]);
  for (int i = 1; i < 6; ++i) q = _mm256_fmadd_pd(q, z, _mm256_set1_pd(kQ[i]));
  return _mm256_fmadd_pd(part.x, _mm256_fmadd_pd(s, q, part.e), sum);
}

__attribute__((target("avx2,fma"))) double sum_avx2(std::size_t count) {
  __m256d sum[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
  for (std::size_t done = 0; done < count; done += kBlock) {
    const std::size_t block = std::min(kBlock, count - done);
    for (std::size_t c = 0; c < block; c += 16)
      for (std::size_t p = 0; p < 4; p += 2) {
        const Part4 a = split4(values + c + 4 * p), b = split4(values + c + 4 * p + 4);
        const __m256d r = _mm256_div_pd(_mm256_set1_pd(1.0), _mm256_mul_pd(a.denominator, b.denominator));
        sum[p] = add4(a, _mm256_mul_pd(r, b.denominator), sum[p]);
        sum[p + 1] = add4(b, _mm256_mul_pd(r, a.denominator), sum[p + 1]);
      }
  }
  double lanes[4];
  _mm256_storeu_pd(lanes, _mm256_add_pd(_mm256_add_pd(sum[0], sum[1]), _mm256_add_pd(sum[2], sum[3])));
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

struct Part8 {
  __m512d x, e, numerator, denominator;
};

AVX512 Part8 split8(const std::int32_t* p) {
  const __m512d x = _mm512_cvtepi32_pd(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
  const __m512i bits = _mm512_castpd_si512(x);
  const __m512i shifted = _mm512_sub_epi64(bits, _mm512_set1_epi64(kHalf));
  const __m512d m =
      _mm512_castsi512_pd(_mm512_sub_epi64(bits, _mm512_and_si512(shifted, _mm512_set1_epi64(kExponent))));
  const __m512d e = _mm512_castsi512_pd(_mm512_or_si512(_mm512_srli_epi64(shifted, 52), _mm512_set1_epi64(kMagic)));
  const __m512d one = _mm512_set1_pd(1.0);
  return {x, _mm512_sub_pd(e, _mm512_set1_pd(0x1p52)), _mm512_sub_pd(m, one), _mm512_add_pd(m, one)};
}

AVX512 __m512d add8(const Part8& part, __m512d reciprocal, __m512d sum) {
  const __m512d s = _mm512_mul_pd(part.numerator, reciprocal), z = _mm512_mul_pd(s, s);
  __m512d q = _mm512_set1_pd(kQ[0]);
  for (int i = 1; i < 6; ++i) q = _mm512_fmadd_pd(q, z, _mm512_set1_pd(kQ[i]));
  return _mm512_fmadd_pd(part.x, _mm512_fmadd_pd(s, q, part.e), sum);
}

__attribute__((target("avx512f,avx512dq,avx512vl"))) double sum_avx512(std::size_t count) {
  __m512d sum[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
  for (std::size_t done = 0; done < count; done += kBlock) {
    const std::size_t block = std::min(kBlock, count - done);
    for (std::size_t c = 0; c < block; c += 16) {
      const Part8 a = split8(values + c), b = split8(values + c + 8);
      const __m512d r = _mm512_div_pd(_mm512_set1_pd(1.0), _mm512_mul_pd(a.denominator, b.denominator));
      sum[0] = add8(a, _mm512_mul_pd(r, b.denominator), sum[0]);
      sum[1] = add8(b, _mm512_mul_pd(r, a.denominator), sum[1]);
    }
  }
  return _mm512_reduce_add_pd(_mm512_add_pd(sum[0], sum[1]));
}

// What a loop in C++ takes without any of this.
double sum_scalar(std::size_t count) {
  double sum = 0.0;
  for (std::size_t c = 0; c < count; ++c) {
    const double x = values[c % kBlock];
    sum += x * std::log2(std::max(x, 1.0));
  }
  return sum;
}

double sum(int level, std::size_t count) {
  if (level == 512) return sum_avx512(count);
  return level == 2 ? sum_avx2(count) : sum_scalar(count);
}

}  // namespace

// Sum of x log2 x over `count` values (a multiple of 16) that repeat every 1,024: x = 1, 38, 75, ... `level`: 2 for
// AVX2, 512 for AVX-512, 1 for a plain loop with std::log2. For tests of the arithmetic.
extern "C" double limit_sum(int level, std::size_t count) {
  for (std::size_t i = 0; i < kBlock; ++i) values[i] = static_cast<std::int32_t>(1 + 37 * i);
  return sum(level, count);
}

// Least time of such a sum in nanoseconds, over `rounds` rounds of a thousand sums.
extern "C" double limit_nanoseconds(int level, std::size_t count, std::size_t rounds) {
  using Clock = std::chrono::steady_clock;
  volatile double sink = limit_sum(level, count);
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < 1000; ++i) sink = sum(level, count);
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - start).count() / 1000);
  }
  (void)sink;
  return best;
}
