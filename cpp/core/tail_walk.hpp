// The innermost loop of enumeration under the second-order model: all tails behind sixteen prefixes at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dispatch.hpp"
#include "kernel.hpp"

namespace fedsel {

constexpr std::size_t kMaxTail = 8;

// The form z'Az of prefix P and tail R (positions from `begin` to `end`) is
//
//     form(P) + sum_{j in R} gains_P[j] + sum_{i != j in R} A_ij,   gains_P[j] = A_jj + 2 sum_{i in P} A_ij.
struct TailBlock {
  const double* doubled;  // 2 A, stride x stride
  std::size_t stride;
  std::size_t begin, end;
  std::size_t size;     // members of a tail, 1 to kMaxTail
  const double* forms;  // of the prefixes, kLanes; infinite for lanes that are not used
  const double* gains;  // stride x kLanes
  double bound;
  double* scratch;  // kMaxTail * (stride + kLanes) values
  // Called for every tail and lane whose form is at most `bound`.
  void (*found)(void* context, const std::uint32_t* tail, std::size_t lane);
  void* context;
};

using TailWalk = void (*)(const TailBlock&);

TailWalk tail_walk(Level level);

}  // namespace fedsel
