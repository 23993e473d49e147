#include <doctest/doctest.h>

#include <limits>

#include "enumerate.hpp"
#include "expand.hpp"
#include "lane_blocks.hpp"
#include "made_model.hpp"

using namespace fedsel;

namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

std::vector<Level> levels() {
  std::vector<Level> result;
  for (Level level : {Level::plain, Level::avx2, Level::avx512})
    if (supported(level)) result.push_back(level);
  return result;
}

// Clients 0 to 2 as the base, each of clients 4 to 19 in a lane.
struct Lanes {
  AlignedVector<std::int32_t> base, block;
  Members clients;

  explicit Lanes(const LossModel& model) : base(sum_rows(model, {0, 1, 2})), block(model.cells() * kLanes) {
    for (std::uint32_t c = 4; c < 4 + kLanes; ++c) clients.push_back(c);
    fill_lanes(model, clients.data(), 1, kLanes, block.data());
  }
};

}  // namespace

TEST_CASE("tables that agree are told from those that do not") {
  const auto pool = made::consistent_pool(1, 5, 4);
  CHECK(pool.model().consistent());
  CHECK_FALSE(pool.separate_model().consistent());
  CHECK_FALSE(made::pool(1, 5, 4).model().consistent());
  for (std::size_t cell = 0; cell < pool.cells; ++cell) {
    auto changed = pool;
    ++changed.counts[3 * pool.cells + cell];
    CHECK_FALSE(changed.model().consistent());
  }
}

TEST_CASE("cells that are negative do not make a dot product, though the tables agree") {
  const std::vector<TableSpec> specs{{2, 2, 0, 0, 1}, {2, 1, 1, 0, 2}};
  const std::vector<std::int32_t> counts{3, -1, 2, 2, 2, 4};
  CHECK_FALSE(LossModel(counts.data(), 1, specs, {1, 1, 1, 1}, best_level()).consistent());
  const std::vector<std::int32_t> positive{3, 1, 2, 2, 4, 4};
  CHECK(LossModel(positive.data(), 1, specs, {1, 1, 1, 1}, best_level()).consistent());
}

TEST_CASE("one variable of two sizes: tables by themselves") {
  const std::vector<TableSpec> specs{{2, 1, 0, 0, 1}, {3, 1, 1, 0, 2}};
  const std::vector<std::int32_t> counts{1, 2, 1, 2, 0};
  CHECK_FALSE(LossModel(counts.data(), 1, specs, {1, 1, 1, 1}, best_level()).consistent());
  CHECK_THROWS_AS(Layout::consistent(specs), std::invalid_argument);
}

TEST_CASE("one dot product equals the tables one by one") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto pool = made::consistent_pool(seed, 7, 2 + seed % 8);
    for (const Members& members : {Members{0}, Members{1}, Members{0, 2, 5}, Members{0, 1, 2, 3, 4, 5, 6}}) {
      const double expected = made::loss(pool, members);
      for (Level level : levels()) {
        const auto model = pool.model(level), separate = pool.separate_model(level);
        REQUIRE(model.consistent());
        Evaluator evaluator(model), tables(separate);
        const auto sums = sum_rows(model, members), cells = sum_rows(separate, members);
        CHECK(std::abs(evaluator.loss(sums.data()) - expected) < 1e-11);
        const auto ours = evaluator.components(sums.data()), theirs = tables.components(cells.data());
        for (std::size_t c = 0; c < kComponents; ++c) CHECK(std::abs(ours[c] - theirs[c]) < 1e-11);
        const double* information = evaluator.information(sums.data());
        const double* other = tables.information(cells.data());
        for (std::size_t t = 0; t < pool.tables.size(); ++t) CHECK(information[t] == other[t]);
        CHECK(model.records() == separate.records());
      }
    }
  }
}

TEST_CASE("AVX2 and AVX-512 agree to the bit, the plain body to 1e-12") {
  if (!supported(Level::avx512)) return;
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto pool = made::consistent_pool(seed, 20, 7);
    const auto plain = pool.model(Level::plain), a = pool.model(Level::avx2), b = pool.model(Level::avx512);
    Evaluator base(plain), left(a), right(b);
    const auto sums = sum_rows(a, {1, 2, 9});
    CHECK(left.loss(sums.data()) == right.loss(sums.data()));
    CHECK(left.components(sums.data()) == right.components(sums.data()));
    CHECK(std::abs(base.loss(sums.data()) - right.loss(sums.data())) < 1e-12);
    const Lanes lanes(a);
    double l[kLanes], r[kLanes], p[kLanes];
    left.lane_losses(lanes.base.data(), lanes.block.data(), l);
    right.lane_losses(lanes.base.data(), lanes.block.data(), r);
    base.lane_losses(lanes.base.data(), lanes.block.data(), p);
    for (std::size_t i = 0; i < kLanes; ++i) {
      CHECK(l[i] == r[i]);
      CHECK(std::abs(p[i] - r[i]) < 1e-12);
    }
  }
}

TEST_CASE("a swap and its loss in one pass equal the two apart") {
  for (const bool consistent : {true, false}) {
    const auto pool = made::consistent_pool(4, 12, 6);
    for (Level level : levels()) {
      const auto model = consistent ? pool.model(level) : pool.separate_model(level);
      Evaluator evaluator(model);
      const auto from = sum_rows(model, {1, 4, 7});
      AlignedVector<std::int32_t> apart(model.stride(), 0), together(model.stride(), 0);
      evaluator.exchange(from.data(), 4, 9, apart.data());
      const double loss = evaluator.exchange_loss(from.data(), 4, 9, together.data());
      CHECK(loss == evaluator.loss(apart.data()));
      CHECK(apart == together);
      CHECK(apart == sum_rows(model, {1, 7, 9}));
    }
  }
}

TEST_CASE("sixteen lanes of consistent rows equal single evaluations; screening keeps its bound") {
  std::size_t told = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto pool = made::consistent_pool(seed, 20, 2 + seed % 7);
    for (Level level : levels()) {
      const auto model = pool.model(level);
      Evaluator evaluator(model);
      const Lanes lanes(model);
      double losses[kLanes];
      float screened[kLanes];
      evaluator.lane_losses(lanes.base.data(), lanes.block.data(), losses);
      for (std::size_t l = 0; l < kLanes; ++l) {
        const double expected = evaluator.loss(sum_rows(model, {0, 1, 2, lanes.clients[l]}).data());
        CHECK(std::abs(losses[l] - expected) < 1e-12);
      }
      for (float origin : {0.0f, 5.0f, 8.5f, 10.0f, 20.0f, 31.0f}) {
        evaluator.screen(lanes.base.data(), lanes.block.data(), origin, screened);
        for (std::size_t l = 0; l < kLanes; ++l) {
          if (screened[l] == -std::numeric_limits<float>::infinity()) continue;
          ++told;
          CHECK(std::abs(screened[l] - losses[l]) <= model.screening_error());
        }
      }
    }
  }
  CHECK(told > 500);
}

TEST_CASE("weights of 0 leave segments out, and change nothing else") {
  const auto pool = made::consistent_pool(6, 8, 6);
  for (const Components& weights :
       {Components{1, 0, 0, 0}, Components{0, 0, 0, -1}, Components{2, 0.89, 0, 0}, Components{}}) {
    const auto model = pool.model().reweighted(weights), separate = pool.separate_model().reweighted(weights);
    REQUIRE(model.consistent());
    Evaluator evaluator(model), tables(separate);
    AlignedVector<std::int32_t> swapped(model.stride(), 0);
    const double loss = evaluator.exchange_loss(sum_rows(model, {1, 2}).data(), 2, 5, swapped.data());
    CHECK(std::abs(loss - tables.loss(sum_rows(separate, {1, 5}).data())) < 1e-11);
    CHECK(swapped == sum_rows(model, {1, 5}));
    CHECK(std::abs(loss - model.loss_of(evaluator.components(swapped.data()))) < 1e-11);
  }
}

TEST_CASE("searches find the same in both forms") {
  for (unsigned seed = 0; seed < 6; ++seed) {
    const auto pool = made::consistent_pool(seed, 14, 6);
    const auto model = pool.model(), separate = pool.separate_model();
    for (std::size_t k : {1u, 4u, 13u}) {
      Control a(kForever), b(kForever), c(kForever), d(kForever);
      const auto ours = enumerate(Problem(model, k), 4, 2, a), theirs = enumerate(Problem(separate, k), 4, 1, b);
      for (std::size_t i = 0; i < ours.board.entries().size(); ++i) {
        const auto &left = ours.board.entries()[i], &right = theirs.board.entries()[i];
        CHECK(std::abs(left.loss - right.loss) < 1e-11);
        CHECK(std::abs(left.loss - made::loss(pool, left.members)) < 1e-11);
      }
      CHECK(expand(Problem(model, k), {10, 1, 2, seed}, c).board.entries()[0].loss ==
            doctest::Approx(expand(Problem(separate, k), {10, 1, 2, seed}, d).board.entries()[0].loss));
    }
  }
}
