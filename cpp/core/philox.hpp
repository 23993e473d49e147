// Philox 4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw (SC 2011): a stream is a key, a draw a
// counter, so every chain has its own stream whatever thread it runs on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace fedsel {

class Philox {
 public:
  Philox(std::uint64_t seed, std::uint64_t stream)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        counter_{0, 0, static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)} {}

  std::uint32_t next32() {
    if (used_ == words_.size()) refill();
    return words_[used_++];
  }

  // Uniform on [0, bound), without bias: Lemire's multiplication with rejection.
  std::uint32_t below(std::uint32_t bound) {
    std::uint64_t product = static_cast<std::uint64_t>(next32()) * bound;
    if (static_cast<std::uint32_t>(product) < bound) {
      const std::uint32_t reject = (0u - bound) % bound;
      while (static_cast<std::uint32_t>(product) < reject) product = static_cast<std::uint64_t>(next32()) * bound;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

  // Uniform on [0, first) x [0, second) from one draw: the second from what the first leaves of it, at a bias below
  // first * second / 2^32.
  std::pair<std::uint32_t, std::uint32_t> below(std::uint32_t first, std::uint32_t second) {
    const std::uint64_t product = static_cast<std::uint64_t>(next32()) * first;
    const std::uint64_t rest = (product & 0xffffffffu) * second;
    return {static_cast<std::uint32_t>(product >> 32), static_cast<std::uint32_t>(rest >> 32)};
  }

  // Uniform on (0, 1], a multiple of 2^-53, never 0.
  double uniform() {
    const std::uint64_t high = next32(), low = next32();
    return static_cast<double>(((high << 32 | low) >> 11) + 1) * 0x1p-53;
  }

  static std::array<std::uint32_t, 4> generate(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
      counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
                 static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    return counter;
  }

 private:
  // A few blocks at a time: they do not depend on each other, so the processor computes them side by side.
  void refill() {
    for (std::size_t first = 0; first < words_.size(); first += 4) {
      const auto block = generate(counter_, key_);
      for (std::size_t i = 0; i < 4; ++i) words_[first + i] = block[i];
      if (++counter_[0] == 0) ++counter_[1];
    }
    used_ = 0;
  }

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 16> words_{};
  std::size_t used_ = 16;
};

}  // namespace fedsel
