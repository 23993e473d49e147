#include "tail_walk.hpp"

#include "kernel_body.hpp"

namespace fedsel {
namespace {

using body::load;
using body::store;

template <int N>
FEDSEL_INLINE bool any_lane(typename body::Vec<N>::L v) {
  if constexpr (N >= 8) v |= __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
  if constexpr (N == 8) {
    v |= __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
  } else if constexpr (N == 4) {
    v |= __builtin_shufflevector(v, v, 2, 3, 0, 1);
  }
  return (v[0] | v[1]) != 0;
}

// Depth-first over the tails; `values[d]` holds the forms with the first d members of the tail, `pulls[d][j]` what j
// would add by its products with them, the same for all lanes. The last member is tried for all positions in one loop
// that keeps the least form of each lane; only where that is low enough are they looked at again.
template <int N>
FEDSEL_INLINE void walk(const TailBlock& block) {
  using D = typename body::Vec<N>::D;
  constexpr std::size_t parts = kLanes / N;
  double* values = block.scratch;
  double* pulls = block.scratch + kMaxTail * kLanes;
  const std::size_t last = block.size - 1;
  std::uint32_t tail[kMaxTail];
  for (std::size_t l = 0; l < kLanes; ++l) values[l] = block.forms[l];
  for (std::size_t j = block.begin; j < block.end; ++j) pulls[j] = 0.0;
  std::size_t depth = 0;
  tail[0] = static_cast<std::uint32_t>(block.begin);
  for (;;) {
    const double* value = values + depth * kLanes;
    const double* pull = pulls + depth * block.stride;
    if (depth == last) {
      D least[parts], form[parts];
      for (std::size_t p = 0; p < parts; ++p) {
        form[p] = load<D>(value + p * N);
        least[p] = __builtin_inf() - (D){};
      }
      for (std::size_t j = tail[depth]; j < block.end; ++j)
        for (std::size_t p = 0; p < parts; ++p) {
          const D gain = load<D>(block.gains + j * kLanes + p * N) + pull[j];
          least[p] = gain < least[p] ? gain : least[p];
        }
      typename body::Vec<N>::L low = {};
      for (std::size_t p = 0; p < parts; ++p) low |= form[p] + least[p] <= block.bound;
      if (any_lane<N>(low)) {
        for (std::size_t j = tail[depth]; j < block.end; ++j)
          for (std::size_t l = 0; l < kLanes; ++l)
            if (value[l] + (block.gains[j * kLanes + l] + pull[j]) <= block.bound) {
              tail[depth] = static_cast<std::uint32_t>(j);
              block.found(block.context, tail, l);
            }
      }
    } else if (const std::size_t j = tail[depth]; j + (last - depth) < block.end) {
      double* next = values + (depth + 1) * kLanes;
      for (std::size_t p = 0; p < parts; ++p)
        store(next + p * N, load<D>(value + p * N) + (load<D>(block.gains + j * kLanes + p * N) + pull[j]));
      double* next_pull = pulls + (depth + 1) * block.stride;
      const double* row = block.doubled + j * block.stride;
      for (std::size_t i = j + 1; i < block.end; ++i) next_pull[i] = pull[i] + row[i];
      tail[++depth] = static_cast<std::uint32_t>(j + 1);
      continue;
    }
    if (depth == 0) return;
    ++tail[--depth];
  }
}

void walk_plain(const TailBlock& block) { walk<2>(block); }
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) void walk_avx2(const TailBlock& block) { walk<4>(block); }
__attribute__((target("avx512f,avx512dq,avx512vl,fma"))) void walk_avx512(const TailBlock& block) { walk<8>(block); }
#endif

}  // namespace

TailWalk tail_walk(Level level) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (level == Level::avx512) return walk_avx512;
  if (level == Level::avx2) return walk_avx2;
#endif
  (void)level;
  return walk_plain;
}

}  // namespace fedsel
