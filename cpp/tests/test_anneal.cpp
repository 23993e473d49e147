#include <doctest/doctest.h>

#include <map>

#include "made_problem.hpp"
#include "quadratic_anneal.hpp"

using namespace fedsel;
using namespace made;

TEST_CASE("annealing honours its budget and its initial states") {
  const auto model = made::pool(8, 30, 5).model();
  auto options = annealing(1);
  options.max_evaluations = 77;
  options.initial_states.assign(4, Members{0, 1, 2, 3, 4});
  Control control(kForever);
  const auto result = anneal(Problem(model, 5), options, control);
  for (const auto& chain : result.chains) CHECK(chain.evaluations == 77);
  CHECK(control.evaluations == 4 * 77);
}

TEST_CASE("annealing under the model ends where no swap improves, mostly at the optimum where the model is good") {
  int optimal = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto rough = made::pool(seed, 14, 6), good = made::consistent_pool(seed, 14, 6);
    for (const auto* pool : {&rough, &good}) {
      const auto model = pool->model();
      Control control(kForever);
      const auto certified = anneal_quadratic(Problem(model, 6), annealing(2), control).certified;
      REQUIRE(certified.size() == 6);
      const double loss = made::loss(*pool, certified);
      for (std::size_t p = 0; p < 6; ++p)
        for (std::uint32_t in = 0; in < 14; ++in) {
          if (std::find(certified.begin(), certified.end(), in) != certified.end()) continue;
          Members neighbour = certified;
          neighbour[p] = in;
          CHECK(made::loss(*pool, neighbour) >= loss - 1e-10);
        }
      optimal += pool == &good && loss < brute_force(good, 6).loss + 1e-10;
    }
  }
  CHECK(optimal >= 8);
}

TEST_CASE("replica exchange samples the distributions of its temperatures") {
  // Fifteen federations. Over all walks, which visit all temperatures, a round ends in a federation as often as the
  // mean over the temperatures of exp(-loss / temperature), normalised, says. Chi-square at 1e-6, on every fiftieth
  // round.
  const auto model = made::consistent_pool(8, 6, 4).model();
  AnnealingOptions options = annealing(2);
  options.chains = 3;
  options.threads = 1;
  options.evaluations_per_level = 2;  // few: trading must not disturb the distributions, rather than they recover
  std::vector<double> losses;
  Evaluator evaluator(model);
  for (std::uint32_t a = 0; a < 6; ++a)
    for (std::uint32_t b = a + 1; b < 6; ++b) losses.push_back(evaluator.loss(sum_rows(model, {a, b}).data()));
  const double spread =
      *std::max_element(losses.begin(), losses.end()) - *std::min_element(losses.begin(), losses.end());
  options.temperatures = {spread, spread / 4.0, spread / 10.0};
  std::map<double, double> share;
  for (double temperature : options.temperatures) {
    double total = 0.0;
    for (double loss : losses) total += std::exp(-loss / temperature);
    for (double loss : losses) share[loss] += std::exp(-loss / temperature) / total / 3.0;
  }
  REQUIRE(share.size() == 15);
  Control control(kForever);
  const auto result = temper(Problem(model, 2), {options, 200'000}, control);
  std::map<double, double> seen;
  double count = 0.0;
  for (const auto& chain : result.chains)
    for (std::size_t i = 100; i < chain.trace.size(); i += 50, ++count) seen[chain.trace[i]] += 1.0;
  double chi = 0.0;
  for (const auto& [loss, expected] : share)
    chi += (seen[loss] - count * expected) * (seen[loss] - count * expected) / (count * expected);
  CHECK(seen.size() == 15);
  CHECK(chi < 54.6);  // 14 degrees of freedom
}

TEST_CASE("replica exchange finds optima, trades temperatures and stops") {
  int traded = 0;
  for (unsigned seed = 20; seed < 30; ++seed) {
    const auto pool = made::pool(seed, 14, 6);
    const auto model = pool.model();
    AnnealingOptions options = annealing(2);
    options.temperatures = {0.1, 0.03, 0.01, 0.003, 0.001};
    options.chains = 5;
    Control control(kForever);
    const auto result = temper(Problem(model, 4), {options, 200}, control);
    CHECK(result.board.entries()[0].members == brute_force(pool, 4).members);
    CHECK(control.evaluations == 5 * (1 + 200 * 20));
    for (const auto& chain : result.chains) {
      CHECK(chain.trace.size() == 200);
      traded += chain.best.members == result.board.entries()[0].members;
    }
  }
  CHECK(traded > 25);  // walks that started hot have been cold as well
  const auto model = made::pool(1, 14, 6).model();
  AnnealingOptions options = annealing(2);
  Control control(kForever);
  control.interrupt();
  CHECK(temper(Problem(model, 4), {options, 1000}, control).board.entries().size() >= 1);
  CHECK(control.evaluations <= options.temperatures.size());
}

TEST_CASE("annealing under the model stops at once, and has a result") {
  const auto model = made::pool(6, 300, 2).model();
  Control control(kForever);
  control.interrupt();
  const auto found = anneal_quadratic(Problem(model, 20), annealing(2), control);
  CHECK(found.certified.empty());
  REQUIRE(found.board.entries().size() >= 1);
  CHECK(found.board.entries()[0].members.size() == 20);
}

TEST_CASE("annealing goes where exact evaluation of every proposal would go") {
  for (const bool consistent : {true, false})
    for (unsigned seed = 0; seed < 6; ++seed) {
      const auto pool = made::consistent_pool(seed, 25, 6);
      const auto model = consistent ? pool.model() : pool.separate_model();
      const Problem problem(model, 6);
      AnnealingOptions options = annealing(1);
      options.chains = 1;
      options.evaluations_per_level = 300;
      Control control(kForever);
      const auto chain = anneal(problem, options, control).chains[0];
      options.screen = false;
      CHECK(anneal(problem, options, control).chains[0].trace == chain.trace);

      Philox random(options.seed, 0);
      Evaluator evaluator(model);
      Members members = problem.random_start(random), outsiders;
      for (std::uint32_t client = 0; client < 25; ++client)
        if (std::find(members.begin(), members.end(), client) == members.end()) outsiders.push_back(client);
      double loss = evaluator.loss(sum_rows(model, members).data());
      std::uint32_t position = random.below(6), slot = random.below(19);
      std::vector<double> trace;
      for (double temperature : options.temperatures) {
        for (int step = 0; step < 300; ++step) {
          Members proposal = members;
          proposal[position] = outsiders[slot];
          const double proposed = evaluator.loss(sum_rows(model, proposal).data());
          const std::uint32_t at = position, from = slot;
          position = random.below(6);
          slot = random.below(19);
          if (proposed > loss && random.uniform() >= std::exp((loss - proposed) / temperature)) continue;
          std::swap(members[at], outsiders[from]);
          loss = proposed;
        }
        trace.push_back(loss);
      }
      CHECK(chain.trace == trace);
    }
}

TEST_CASE("screening a swap keeps its bound, and writes the exchanged row") {
  std::size_t told = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto pool = made::consistent_pool(seed, 12, 2 + seed % 7);
    for (Level level : {Level::plain, Level::avx2, Level::avx512}) {
      if (!supported(level)) continue;
      for (const Components& weights : {Components{2.0, 0.89, 0.11, -1.33}, Components{0.0, 3.0, 0.0, 0.0}}) {
        const auto model = pool.model(level).reweighted(weights);
        Evaluator evaluator(model);
        AlignedVector<std::int32_t> to(model.stride(), 0);
        for (const Members& members : {Members{1}, Members{2, 5, 9}, Members{0, 1, 2, 3, 4, 5, 6}})
          for (std::uint32_t in : {0u, 10u, 11u}) {
            const std::uint32_t out = members.back();
            if (std::find(members.begin(), members.end(), in) != members.end()) continue;
            const double screened =
                evaluator.exchange_screen(sum_rows(model, members).data(), out, in, to.data(), {0, 1});
            Members swapped = members;
            swapped.back() = in;
            CHECK(to == sum_rows(model, swapped));
            if (screened == -kForever) continue;
            ++told;
            CHECK(std::abs(screened - evaluator.loss(to.data())) <= model.screening_error());
          }
      }
    }
  }
  CHECK(told > 200);
}
