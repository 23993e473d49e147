#include <doctest/doctest.h>

#include <limits>
#include <thread>

#include "anneal.hpp"
#include "enumerate.hpp"
#include "expand.hpp"
#include "made_model.hpp"
#include "polish.hpp"

using namespace fedsel;

namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

Candidate brute_force(const made::Pool& pool, std::size_t k) {
  Candidate best{kForever, {}};
  for (std::uint32_t bits = 0; bits < (1u << pool.clients); ++bits) {
    if (static_cast<std::size_t>(__builtin_popcount(bits)) != k) continue;
    Members members;
    for (std::uint32_t c = 0; c < pool.clients; ++c)
      if (bits >> c & 1) members.push_back(c);
    const double loss = made::loss(pool, members);
    if (loss < best.loss) best = {loss, members};
  }
  return best;
}

AnnealingOptions annealing(std::size_t k, std::size_t threads) {
  std::vector<double> temperatures;
  for (double t = 0.1; t > 1e-4; t *= 0.9) temperatures.push_back(t);
  return {k, temperatures, 20, std::numeric_limits<std::size_t>::max(), 4, 5, threads, 42, {}};
}

}  // namespace

TEST_CASE("binomials, saturating") {
  CHECK(binomial(46, 5) == 1370754);
  CHECK(binomial(50, 15) == 2250829575120);
  CHECK(binomial(5, 0) == 1);
  CHECK(binomial(5, 6) == 0);
  CHECK(binomial(67, 33) == 14226520737620288370ull);
  CHECK(binomial(68, 34) == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("enumeration finds what brute force finds, and visits every federation once") {
  for (unsigned seed = 0; seed < 6; ++seed) {
    const auto pool = made::pool(seed, 11, 5);
    const auto model = pool.model();
    for (std::size_t k = 1; k <= 11; ++k) {
      Control control(kForever);
      const auto result = enumerate(model, k, 3, 2, control);
      const auto expected = brute_force(pool, k);
      CHECK(result.complete);
      CHECK(control.evaluations == binomial(11, k));
      CHECK(result.board.entries()[0].members == expected.members);
      CHECK(result.board.entries()[0].loss == doctest::Approx(expected.loss).epsilon(1e-11));
    }
  }
}

TEST_CASE("searches do not depend on the number of threads") {
  const auto model = made::pool(9, 20, 8).model();
  auto best = [](const Leaderboard& board) {
    std::vector<std::pair<double, Members>> all;
    for (const auto& entry : board.entries()) all.emplace_back(entry.loss, entry.members);
    return all;
  };
  for (std::size_t threads : {2u, 8u}) {
    Control a(kForever), b(kForever);
    CHECK(best(anneal(model, annealing(6, 1), a).board) == best(anneal(model, annealing(6, threads), b).board));
    Control c(kForever), d(kForever);
    CHECK(best(expand(model, {6, 5, 5, 1, 3}, c).board) == best(expand(model, {6, 5, 5, threads, 3}, d).board));
    Control e(kForever), f(kForever);
    CHECK(best(enumerate(model, 4, 5, 1, e).board) == best(enumerate(model, 4, 5, threads, f).board));
  }
}

TEST_CASE("expansion and annealing reach the optimum of small pools") {
  for (unsigned seed = 20; seed < 30; ++seed) {
    const auto pool = made::pool(seed, 14, 6);
    const auto model = pool.model();
    const auto expected = brute_force(pool, 4);
    Control a(kForever), b(kForever);
    CHECK(expand(model, {4, 15, 1, 2, 0}, a).board.entries()[0].members == expected.members);
    CHECK(anneal(model, annealing(4, 2), b).board.entries()[0].members == expected.members);
  }
}

TEST_CASE("descent ends where no swap improves") {
  const auto pool = made::pool(31, 18, 6);
  const auto model = pool.model();
  Evaluator evaluator(model);
  Control control(kForever);
  Leaderboard board(1);
  Federation federation(model, {0, 1, 2, 3});
  double loss = evaluator.loss(federation.sums());
  CHECK(SwapDescent(model).run(federation, loss, evaluator, control, board));
  CHECK(loss == doctest::Approx(made::loss(pool, federation.members())).epsilon(1e-10));
  for (std::size_t p = 0; p < 4; ++p)
    for (std::uint32_t in = 0; in < 18; ++in) {
      if (federation.contains(in)) continue;
      Members neighbour = federation.members();
      neighbour[p] = in;
      CHECK(made::loss(pool, neighbour) > loss - 1e-10);
    }
}

TEST_CASE("a whole pool, and one client") {
  for (std::size_t clients : {1u, 3u}) {
    const auto model = made::pool(2, clients, 4).model();
    Control a(kForever), b(kForever), c(kForever);
    CHECK(enumerate(model, clients, 5, 1, a).board.entries().size() == 1);
    CHECK(expand(model, {clients, 2, 5, 2, 0}, b).board.entries().size() == 1);
    CHECK(anneal(model, annealing(clients, 1), c).board.entries().size() == 1);
  }
}

TEST_CASE("a search stops when told, and keeps its best") {
  const auto model = made::pool(6, 200, 10).model();
  SUBCASE("time limit") {
    Control control(0.05);
    const auto result = enumerate(model, 10, 2, 2, control);
    CHECK_FALSE(result.complete);
    CHECK(control.reason() == StopReason::time_limit);
    CHECK(result.board.entries().size() == 2);
  }
  SUBCASE("interrupt from another thread") {
    Control control(kForever);
    std::thread stopper([&] {
      while (control.evaluations < 1000) std::this_thread::yield();
      control.interrupt();
    });
    CHECK_FALSE(enumerate(model, 10, 2, 2, control).complete);
    stopper.join();
    CHECK(control.reason() == StopReason::interrupted);
  }
  SUBCASE("before it starts") {
    Control control(kForever);
    control.interrupt();
    CHECK(anneal(model, annealing(10, 2), control).board.entries().size() >= 1);
    Control again(kForever);
    again.interrupt();
    CHECK(expand(model, {10, 5, 1, 2, 0}, again).board.entries().size() == 1);
  }
}

TEST_CASE("annealing honours its budget and its initial states") {
  const auto model = made::pool(8, 30, 5).model();
  auto options = annealing(5, 1);
  options.max_evaluations = 77;
  options.initial_states.assign(4, Members{0, 1, 2, 3, 4});
  Control control(kForever);
  const auto result = anneal(model, options, control);
  for (const auto& chain : result.chains) CHECK(chain.evaluations == 77);
  CHECK(control.evaluations == 4 * 77);
}
