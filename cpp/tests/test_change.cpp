#include <doctest/doctest.h>

#include <cmath>

#include "dispatch.hpp"
#include "made_problem.hpp"

using namespace fedsel;
using namespace made;

namespace {

// Members first, then the others, of a pool whose first client has no rows.
Members first_of(std::uint32_t count) {
  Members members(count);
  for (std::uint32_t i = 0; i < count; ++i) members[i] = i;
  return members;
}

}  // namespace

TEST_CASE("the bound on an exchange stays below its loss") {
  for (Level level : {Level::plain, Level::avx2, Level::avx512}) {
    if (!supported(level)) continue;
    for (unsigned seed = 0; seed < 6; ++seed)
      for (std::uint32_t k : {1u, 2u, 5u, 40u, 100u}) {
        const auto model = made::consistent_pool(seed, 110, 6).model(level);
        REQUIRE(model.consistent());
        Evaluator evaluator(model);
        const auto sums = sum_rows(model, first_of(k));
        evaluator.expand_at(sums.data(), evaluator.loss(sums.data()));
        AlignedVector<std::int32_t> to(model.stride(), 0);
        for (std::uint32_t out = 0; out < k; ++out)
          for (std::uint32_t in = k; in < 110; ++in)
            CHECK(evaluator.exchange_bound(out, in, {0, 1}) <=
                  evaluator.exchange_loss(sums.data(), out, in, to.data()));
      }
  }
}

TEST_CASE("the bound comes close to the loss where a federation has many members") {
  const std::uint32_t k = 2000;
  for (Level level : {Level::plain, Level::avx2, Level::avx512}) {
    if (!supported(level)) continue;
    const auto model = made::consistent_pool(1, k + 50, 5).model(level);
    Evaluator evaluator(model);
    const auto sums = sum_rows(model, first_of(k));
    const double loss = evaluator.loss(sums.data());
    evaluator.expand_at(sums.data(), loss);
    AlignedVector<std::int32_t> to(model.stride(), 0);
    double slack = 0.0, changed = 0.0;
    for (std::uint32_t out = 0; out < 40; ++out)
      for (std::uint32_t in = k; in < k + 50; ++in) {
        const double exact = evaluator.exchange_loss(sums.data(), out, in, to.data());
        slack += exact - evaluator.exchange_bound(out, in, {0, 1});
        changed += std::abs(exact - loss);
      }
    CHECK(slack < 0.2 * changed);
  }
}

TEST_CASE("nothing is told about exchanges of federations without rows") {
  const auto model = made::consistent_pool(1, 5, 4).model();  // client 0 has no rows
  Evaluator evaluator(model);
  const auto sums = sum_rows(model, {0});
  evaluator.expand_at(sums.data(), evaluator.loss(sums.data()));
  CHECK(evaluator.exchange_bound(0, 1, {0, 1}) == -kForever);
  const auto other = sum_rows(model, {1});
  evaluator.expand_at(other.data(), evaluator.loss(other.data()));
  CHECK(evaluator.exchange_bound(1, 0, {0, 1}) == -kForever);
}

TEST_CASE("bounded proposals leave a walk among many members as it is") {
  const auto model = made::consistent_pool(3, 150, 6).model();
  const Problem problem(model, 60);
  std::vector<AnnealingResult> results;
  for (const bool screen : {true, false}) {
    auto options = annealing(1);
    options.temperatures = {1e-3, 1e-4, 1e-5, 1e-6};
    options.evaluations_per_level = 1500;
    options.screen = screen;
    Control control(kForever);
    results.push_back(anneal(problem, options, control));
  }
  for (std::size_t c = 0; c < results[0].chains.size(); ++c) {
    CHECK(results[0].chains[c].best.members == results[1].chains[c].best.members);
    CHECK(results[0].chains[c].trace == results[1].chains[c].trace);
  }
}
