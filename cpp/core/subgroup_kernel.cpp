#include "subgroup_kernel.hpp"

#include <bit>

namespace fedsel {
namespace {

#if defined(__GNUC__)
#define FEDSEL_INLINE inline __attribute__((always_inline))
#else
#define FEDSEL_INLINE inline
#endif

// Without a population count instruction: sums of neighbouring bits, pairs, nibbles, then bytes (by multiplication).
// The compiler vectorises it; std::popcount would become a library call.
struct ByAddition {
  static FEDSEL_INLINE std::uint64_t count(std::uint64_t x) {
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (x * 0x0101010101010101u) >> 56;
  }
};

struct ByInstruction {
  static FEDSEL_INLINE std::uint64_t count(std::uint64_t x) { return static_cast<std::uint64_t>(std::popcount(x)); }
};

template <class Popcount>
FEDSEL_INLINE void count_tile(const std::uint64_t* const* covers, const std::uint64_t* condition, std::size_t words,
                              std::uint32_t* counts) {
  static_assert(kCoverTile == 4);
  const std::uint64_t *a = covers[0], *b = covers[1], *c = covers[2], *d = covers[3];
  std::uint64_t sum_a = 0, sum_b = 0, sum_c = 0, sum_d = 0;
  for (std::size_t w = 0; w < words; ++w) {
    const std::uint64_t x = condition[w];
    sum_a += Popcount::count(a[w] & x);
    sum_b += Popcount::count(b[w] & x);
    sum_c += Popcount::count(c[w] & x);
    sum_d += Popcount::count(d[w] & x);
  }
  counts[0] += static_cast<std::uint32_t>(sum_a);
  counts[1] += static_cast<std::uint32_t>(sum_b);
  counts[2] += static_cast<std::uint32_t>(sum_c);
  counts[3] += static_cast<std::uint32_t>(sum_d);
}

template <class Popcount>
FEDSEL_INLINE void count_one(const std::uint64_t* cover, const std::uint64_t* condition, std::size_t words,
                             std::uint32_t* counts) {
  std::uint64_t sum = 0;
  for (std::size_t w = 0; w < words; ++w) sum += Popcount::count(cover[w] & condition[w]);
  *counts += static_cast<std::uint32_t>(sum);
}

template <class Code>
FEDSEL_INLINE void range(const Code* codes, Code first, Code span, std::size_t words, std::uint64_t* bits) {
  for (std::size_t w = 0; w < words; ++w) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      const Code distance = static_cast<Code>(codes[64 * w + i] - first);
      word |= std::uint64_t{distance <= span} << i;
    }
    bits[w] |= word;
  }
}

#define FEDSEL_WRAPPERS(LEVEL, TARGET, POPCOUNT)                                                                   \
  TARGET void tile_##LEVEL(const std::uint64_t* const* covers, const std::uint64_t* condition, std::size_t words,  \
                           std::uint32_t* counts) {                                                                \
    count_tile<POPCOUNT>(covers, condition, words, counts);                                                        \
  }                                                                                                                \
  TARGET void one_##LEVEL(const std::uint64_t* cover, const std::uint64_t* condition, std::size_t words,           \
                          std::uint32_t* counts) {                                                                 \
    count_one<POPCOUNT>(cover, condition, words, counts);                                                          \
  }                                                                                                                \
  TARGET void narrow_##LEVEL(const std::uint8_t* codes, std::uint8_t first, std::uint8_t span, std::size_t words,  \
                             std::uint64_t* bits) {                                                                \
    range<std::uint8_t>(codes, first, span, words, bits);                                                          \
  }                                                                                                                \
  TARGET void wide_##LEVEL(const std::uint32_t* codes, std::uint32_t first, std::uint32_t span, std::size_t words, \
                           std::uint64_t* bits) {                                                                  \
    range<std::uint32_t>(codes, first, span, words, bits);                                                         \
  }                                                                                                                \
  constexpr BitKernels kernels_##LEVEL{tile_##LEVEL, one_##LEVEL, narrow_##LEVEL, wide_##LEVEL};

FEDSEL_WRAPPERS(plain, , ByAddition)
#if defined(__x86_64__) && defined(__GNUC__)
FEDSEL_WRAPPERS(avx2, __attribute__((target("avx2,popcnt"))), ByInstruction)
FEDSEL_WRAPPERS(avx512, __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512vpopcntdq,popcnt"))),
                ByInstruction)
#endif
#undef FEDSEL_WRAPPERS

}  // namespace

const BitKernels& bit_kernels(Level level) {
#if defined(__x86_64__) && defined(__GNUC__)
  // Not every CPU of the level avx512 counts bits in vectors; one that does not counts them word by word.
  const bool counts_vectors = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vpopcntdq");
  if (level == Level::avx512 && counts_vectors) return kernels_avx512;
  if (level != Level::plain && __builtin_cpu_supports("popcnt")) return kernels_avx2;
#endif
  (void)level;
  return kernels_plain;
}

}  // namespace fedsel
