#include <doctest/doctest.h>

#include <vector>

#include "philox.hpp"

using fedsel::Philox;

TEST_CASE("known answers of Philox 4x32-10 (Random123)") {
  using Block = std::array<std::uint32_t, 4>;
  CHECK(Philox::generate({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox::generate({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Philox::generate({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("streams differ and repeat") {
  Philox a(7, 0), again(7, 0), other(7, 1);
  int same = 0;
  for (int i = 0; i < 100; ++i) {
    const auto x = a.next32();
    CHECK(x == again.next32());
    same += x == other.next32();
  }
  CHECK(same == 0);
}

TEST_CASE("bounded draws are uniform, chi-square at 1e-6") {
  Philox random(3, 0);
  std::vector<int> seen(7, 0);
  for (int i = 0; i < 70000; ++i) ++seen[random.below(7)];
  double chi = 0.0;
  for (int count : seen) chi += (count - 10000.0) * (count - 10000.0) / 10000.0;
  CHECK(chi < 38.3);  // 1 - 1e-6 quantile with 6 degrees of freedom; the seed is fixed
  for (int i = 0; i < 1000; ++i) {
    const double u = random.uniform();
    CHECK((u > 0.0 && u <= 1.0));
  }
}

TEST_CASE("two bounded draws from one word are uniform and independent, chi-square at 1e-6") {
  Philox random(4, 0);
  std::vector<int> seen(35, 0);
  for (int i = 0; i < 70000; ++i) {
    const auto [a, b] = random.below(5, 7);
    REQUIRE(a < 5);
    REQUIRE(b < 7);
    ++seen[a * 7 + b];
  }
  double chi = 0.0;
  for (int count : seen) chi += (count - 2000.0) * (count - 2000.0) / 2000.0;
  CHECK(chi < 88.4);  // 34 degrees of freedom
}
