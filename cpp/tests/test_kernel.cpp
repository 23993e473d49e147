#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

#include "federation.hpp"
#include "lane_blocks.hpp"
#include "made_model.hpp"

using namespace fedsel;

namespace {

// Clients 0 to 2 as the base, each of clients 4 to 19 in a lane.
struct SixteenLanes {
  Members clients;
  AlignedVector<std::int32_t> base, block;

  explicit SixteenLanes(const LossModel& model) : base(sum_rows(model, {0, 1, 2})), block(model.cells() * kLanes) {
    for (std::uint32_t c = 4; c < 4 + kLanes; ++c) clients.push_back(c);
    fill_lanes(model, clients.data(), 1, kLanes, block.data());
  }
};

}  // namespace

TEST_CASE("every level equals the plain reference") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto pool = made::pool(seed, 6, 9);
    const Members members{0, 2, 5};
    const double expected = made::loss(pool, members);
    for (Level level : {Level::plain, Level::avx2, Level::avx512}) {
      if (!supported(level)) continue;
      const auto model = pool.model(level);
      Evaluator evaluator(model);
      CHECK(evaluator.loss(sum_rows(model, members).data()) == doctest::Approx(expected).epsilon(1e-11));
    }
  }
}

TEST_CASE("AVX2 and AVX-512 agree to the bit") {
  if (!supported(Level::avx512)) return;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto pool = made::pool(seed, 20, 30);
    const auto a = pool.model(Level::avx2), b = pool.model(Level::avx512);
    Evaluator left(a), right(b);
    CHECK(left.loss(sum_rows(a, {0, 1, 3}).data()) == right.loss(sum_rows(b, {0, 1, 3}).data()));
    const SixteenLanes lanes(a);
    double l[kLanes], r[kLanes];
    left.lane_losses(lanes.base.data(), lanes.block.data(), l);
    right.lane_losses(lanes.base.data(), lanes.block.data(), r);
    for (std::size_t i = 0; i < kLanes; ++i) CHECK(l[i] == r[i]);
  }
}

TEST_CASE("sixteen lanes equal sixteen single evaluations") {
  const auto pool = made::pool(11, 20, 12);
  for (Level level : {Level::plain, Level::avx2, Level::avx512}) {
    if (!supported(level)) continue;
    const auto model = pool.model(level);
    Evaluator evaluator(model);
    const SixteenLanes lanes(model);
    double losses[kLanes];
    evaluator.lane_losses(lanes.base.data(), lanes.block.data(), losses);
    for (std::size_t l = 0; l < kLanes; ++l) {
      const double expected = evaluator.loss(sum_rows(model, {0, 1, 2, lanes.clients[l]}).data());
      CHECK(losses[l] == doctest::Approx(expected).epsilon(1e-11));
    }
  }
}

TEST_CASE("sums follow swaps exactly") {
  const auto pool = made::pool(5, 12, 7);
  const auto model = pool.model();
  Evaluator evaluator(model);
  Federation federation(model, {1, 4, 7});
  std::mt19937 random(1);
  for (int step = 0; step < 200; ++step) {
    const std::size_t position = random() % 3;
    std::uint32_t in;
    do in = random() % 12;
    while (federation.contains(in));
    federation.swap(evaluator, position, in);
    const auto fresh = sum_rows(model, federation.members());
    CHECK(std::equal(fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(model.cells()), federation.sums()));
  }
}

TEST_CASE("an empty table has no information, one row or one column neither") {
  const std::vector<std::int32_t> counts{0, 0, 0, 0, -3, -1, -2, -9, 5, 6, 7, 8};
  const LossModel model(counts.data(), 1, {{2, 2, 0}, {2, 2, 1}, {1, 4, 2}}, {1, 1, 1, 1}, best_level());
  Evaluator evaluator(model);
  const auto components = evaluator.components(model.row(0));
  CHECK(components[0] == 0.0);
  CHECK(components[1] == 0.0);
  CHECK(std::abs(components[2]) < 1e-14);
}

TEST_CASE("bad models are refused") {
  const std::vector<std::int32_t> big{2147483647, 1};
  CHECK_THROWS_AS(LossModel(big.data(), 1, {{1, 2, 0}}, {1, 1, 1, 1}, best_level()), std::invalid_argument);
  CHECK_THROWS_AS(LossModel(big.data(), 0, {{1, 2, 0}}, {1, 1, 1, 1}, best_level()), std::invalid_argument);
  CHECK_THROWS_AS(LossModel(big.data(), 1, {{1, 2, 4}}, {1, 1, 1, 1}, best_level()), std::invalid_argument);
  CHECK_THROWS_AS(LossModel(big.data(), 1, {{0, 2, 0}}, {1, 1, 1, 1}, best_level()), std::invalid_argument);
  const auto model = made::pool(1, 3, 3).model();
  CHECK_THROWS_AS(Federation(model, {0, 0}), std::invalid_argument);
  CHECK_THROWS_AS(Federation(model, {3}), std::invalid_argument);
}

TEST_CASE("screening stays within its bound, or says that it cannot tell") {
  std::size_t told = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto pool = made::pool(seed, 20, 2 + seed % 2);
    for (Level level : {Level::plain, Level::avx2, Level::avx512}) {
      if (!supported(level)) continue;
      const auto model = pool.model(level);
      Evaluator evaluator(model);
      const SixteenLanes lanes(model);
      double exact[kLanes];
      float screened[kLanes];
      evaluator.lane_losses(lanes.base.data(), lanes.block.data(), exact);
      for (float origin : {5.0f, 11.0f, 13.0f, 15.0f, 17.0f, 19.0f, 31.0f}) {
        evaluator.screen(lanes.base.data(), lanes.block.data(), origin, screened);
        for (std::size_t l = 0; l < kLanes; ++l) {
          if (screened[l] == -std::numeric_limits<float>::infinity()) continue;
          ++told;
          CHECK(std::abs(screened[l] - exact[l]) <= model.screening_error());
        }
      }
    }
  }
  CHECK(told > 500);
}
