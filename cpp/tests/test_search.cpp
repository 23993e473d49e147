#include <doctest/doctest.h>

#include <thread>

#include "baselines.hpp"
#include "enumerate.hpp"
#include "exchange.hpp"
#include "expand.hpp"
#include "made_problem.hpp"
#include "polish.hpp"
#include "quadratic_anneal.hpp"

using namespace fedsel;
using namespace made;

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
      const auto result = enumerate(Problem(model, k), 3, 2, control);
      const auto expected = brute_force(pool, k);
      CHECK(result.complete);
      CHECK(control.evaluations == binomial(11, k));
      CHECK(result.board.entries()[0].members == expected.members);
      CHECK(result.board.entries()[0].loss == doctest::Approx(expected.loss).epsilon(1e-11));
    }
  }
}

TEST_CASE("enumeration does no more work than there are federations") {
  const auto model = made::pool(4, 46, 2).model();
  for (std::size_t k : {45u, 46u}) {
    Control control(20.0);
    CHECK(enumerate(Problem(model, k), 3, 2, control).complete);
    CHECK(control.evaluations == binomial(46, k));
  }
}

TEST_CASE("enumeration stops at once whatever its shape, and has a result") {
  const auto model = made::pool(6, 1500, 2).model();
  for (std::size_t k : {1u, 2u, 3u, 750u}) {
    Control control(kForever);
    control.interrupt();
    const auto result = enumerate(Problem(model, k), 2, 2, control);
    CHECK_FALSE(result.complete);
    CHECK(control.evaluations == 0);
    CHECK(result.board.entries().size() == 1);
    CHECK(result.board.entries()[0].members.size() == k);
  }
}

TEST_CASE("what is called swap-optimal is, ties included") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    made::Pool pool;
    pool.clients = 4 + random() % 5;
    pool.tables = {{2, 2, 0}, {2, 1, 1}, {2, 1, 3}};
    pool.cells = 8;
    for (std::size_t c = 0; c < pool.clients * pool.cells; ++c)
      pool.counts.push_back(static_cast<std::int32_t>(random() % 2));
    const auto model = pool.model();
    const std::size_t k = 1 + random() % (pool.clients - 1);
    Control control(kForever);
    const auto certified = expand(Problem(model, k), {1, 3, 1, seed}, control).certified;
    REQUIRE(certified.size() == k);
    const double loss = made::loss(pool, certified);
    for (std::size_t p = 0; p < k; ++p)
      for (std::uint32_t in = 0; in < pool.clients; ++in) {
        if (std::find(certified.begin(), certified.end(), in) != certified.end()) continue;
        Members neighbour = certified;
        neighbour[p] = in;
        CHECK(made::loss(pool, neighbour) >= loss - 1e-10);
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
    CHECK(best(anneal(Problem(model, 6), annealing(1), a).board) ==
          best(anneal(Problem(model, 6), annealing(threads), b).board));
    Control c(kForever), d(kForever);
    CHECK(best(expand(Problem(model, 6), {5, 5, 1, 3}, c).board) ==
          best(expand(Problem(model, 6), {5, 5, threads, 3}, d).board));
    Control g(kForever), h(kForever);
    const auto left = anneal_quadratic(Problem(model, 6), annealing(1), g),
               right = anneal_quadratic(Problem(model, 6), annealing(threads), h);
    CHECK(best(left.board) == best(right.board));
    Control i(kForever), j(kForever);
    const auto one = temper(Problem(model, 6), {annealing(1), 20}, i),
               more = temper(Problem(model, 6), {annealing(threads), 20}, j);
    CHECK(best(one.board) == best(more.board));
    CHECK(one.chains[3].trace == more.chains[3].trace);
    CHECK(i.evaluations == j.evaluations);
    CHECK(left.certified == right.certified);
    CHECK(g.evaluations == h.evaluations);
    Control e(kForever), f(kForever);
    CHECK(best(enumerate(Problem(model, 4), 5, 1, e).board) == best(enumerate(Problem(model, 4), 5, threads, f).board));
  }
}

TEST_CASE("expansion and annealing reach the optimum of small pools") {
  for (unsigned seed = 20; seed < 30; ++seed) {
    const auto pool = made::pool(seed, 14, 6);
    const auto model = pool.model();
    const auto expected = brute_force(pool, 4);
    Control a(kForever), b(kForever);
    CHECK(expand(Problem(model, 4), {15, 1, 2, 0}, a).board.entries()[0].members == expected.members);
    CHECK(anneal(Problem(model, 4), annealing(2), b).board.entries()[0].members == expected.members);
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
  CHECK(SwapDescent(Problem(model, 4)).run(federation, loss, evaluator, control, board));
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
    CHECK(enumerate(Problem(model, clients), 5, 1, a).board.entries().size() == 1);
    CHECK(expand(Problem(model, clients), {2, 5, 2, 0}, b).board.entries().size() == 1);
    CHECK(anneal(Problem(model, clients), annealing(1), c).board.entries().size() == 1);
  }
}

TEST_CASE("a search stops when told, and keeps its best") {
  const auto model = made::pool(6, 200, 10).model();
  SUBCASE("time limit") {
    Control control(0.05);
    const auto result = enumerate(Problem(model, 10), 2, 2, control);
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
    CHECK_FALSE(enumerate(Problem(model, 10), 2, 2, control).complete);
    stopper.join();
    CHECK(control.reason() == StopReason::interrupted);
  }
  SUBCASE("before it starts") {
    Control control(kForever);
    control.interrupt();
    CHECK(anneal(Problem(model, 10), annealing(2), control).board.entries().size() >= 1);
    Control again(kForever);
    again.interrupt();
    CHECK(expand(Problem(model, 10), {5, 1, 2, 0}, again).board.entries().size() == 1);
  }
}

TEST_CASE("every search keeps the constraints, and enumeration finds the best that do") {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const auto pool = made::pool(seed, 13, 5);
    const auto model = pool.model();
    const Problem problem = constrained(model, 4);
    Candidate expected{kForever, {}};
    std::uint64_t feasible = 0;
    for (std::uint32_t bits = 0; bits < (1u << 13); ++bits) {
      Members members;
      for (std::uint32_t c = 0; c < 13; ++c)
        if (bits >> c & 1) members.push_back(c);
      if (members.size() != 4 || !meets(problem, members)) continue;
      ++feasible;
      const double loss = made::loss(pool, members);
      if (loss < expected.loss) expected = {loss, members};
    }
    Control a(kForever), b(kForever), c(kForever), d(kForever), e(kForever);
    const auto proof = enumerate(problem, 3, 2, a);
    CHECK(proof.board.entries()[0].members == expected.members);
    CHECK(a.evaluations == feasible);
    const auto expanded = expand(problem, {20, 5, 2, seed}, b);
    const auto annealed = anneal(problem, annealing(2), c);
    const auto greedily = greedy(problem, 1, seed, d);
    const auto descended = descend(problem, {}, 20, 5, 2, seed, e);
    Control f(kForever), g(kForever);
    const auto tempered = temper(problem, {annealing(2), 10}, g);
    const auto modelled = anneal_quadratic(problem, annealing(2), f);
    for (const auto* board : {&proof.board, &expanded.board, &annealed.board, &greedily.board, &descended.board,
                              &modelled.board, &tempered.board})
      for (const auto& entry : board->entries()) {
        CHECK(meets(problem, entry.members));
        CHECK(entry.loss == doctest::Approx(made::loss(pool, entry.members)).epsilon(1e-10));
      }
    CHECK(expanded.board.entries()[0].loss >= expected.loss - 1e-10);
    CHECK(annealed.board.entries()[0].loss >= expected.loss - 1e-10);
  }
}

TEST_CASE("descent by exchanges ends where no exchange of up to so many members improves") {
  int improved = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const auto pool = made::pool(seed, 13, 5);
    const auto model = pool.model();
    for (const bool restricted : {false, true}) {
      const Problem problem = restricted ? constrained(model, 4) : Problem(model, 5);
      const auto allowed = [&](const Members& members) { return !restricted || meets(problem, members); };
      Control first(kForever);
      const auto start = descend(problem, {}, 1, 1, 1, seed, first).board.entries()[0];
      for (std::size_t size : {1u, 2u, 3u, 9u}) {
        Control a(kForever), b(kForever);
        const auto found = descend_by_exchanges(problem, start.members, size, 3, 1, a);
        const auto again = descend_by_exchanges(problem, start.members, size, 3, 5, b);
        CHECK(found.optimal == again.optimal);
        CHECK(a.evaluations == b.evaluations);
        REQUIRE(found.optimal.size() == problem.k());
        CHECK(allowed(found.optimal));
        const double loss = made::loss(pool, found.optimal);
        CHECK(found.board.entries()[0].loss == doctest::Approx(loss));
        improved += loss < start.loss - 1e-9;
        for (std::uint32_t bits = 0; bits < (1u << 13); ++bits) {
          if (static_cast<std::size_t>(__builtin_popcount(bits)) != problem.k()) continue;
          Members members;
          std::size_t common = 0;
          for (std::uint32_t c = 0; c < 13; ++c)
            if (bits >> c & 1) {
              members.push_back(c);
              common += std::binary_search(found.optimal.begin(), found.optimal.end(), c);
            }
          if (problem.k() - common > size || !allowed(members)) continue;
          CHECK(made::loss(pool, members) >= loss - 1e-10);
        }
      }
    }
  }
  CHECK(improved > 10);
}

TEST_CASE("descent by exchanges stops, and knows a federation of fixed members") {
  const auto model = made::pool(2, 9, 3).model();
  Control stopped(kForever), running(kForever);
  stopped.interrupt();
  const auto found = descend_by_exchanges(Problem(model, 3), {0, 1, 2}, 2, 3, 2, stopped);
  CHECK(found.optimal.empty());
  CHECK(found.board.entries()[0].members == Members{0, 1, 2});
  const Problem fixed(model, 2, {1, 4}, {0, 2}, {}, {});
  CHECK(descend_by_exchanges(fixed, {1, 4}, 2, 3, 2, running).optimal == Members{1, 4});
}

TEST_CASE("greedy adds the best client each time") {
  const auto pool = made::pool(12, 15, 5);
  const auto model = pool.model();
  Members members;
  for (int step = 0; step < 5; ++step) {
    Candidate best{kForever, {}};
    for (std::uint32_t client = 0; client < 15; ++client) {
      if (std::find(members.begin(), members.end(), client) != members.end()) continue;
      Members grown = members;
      grown.push_back(client);
      const double loss = made::loss(pool, grown);
      if (loss < best.loss) best = {loss, grown};
    }
    members = best.members;
  }
  std::sort(members.begin(), members.end());
  Control control(kForever);
  CHECK(greedy(Problem(model, 5), 1, 0, control).board.entries()[0].members == members);
}

TEST_CASE("fixed members alone leave one federation") {
  const auto model = made::pool(2, 6, 3).model();
  const Problem problem(model, 2, {1, 4}, {0, 2, 3, 5}, {}, {});
  Control a(kForever), b(kForever), c(kForever), d(kForever), e(kForever);
  CHECK(enumerate(problem, 3, 2, a).board.entries()[0].members == Members{1, 4});
  CHECK(expand(problem, {2, 3, 2, 0}, b).board.entries().size() == 1);
  CHECK(anneal(problem, annealing(1), c).board.entries().size() == 1);
  CHECK(greedy(problem, 3, 0, d).board.entries()[0].members == Members{1, 4});
  Control f(kForever);
  CHECK(anneal_quadratic(problem, annealing(1), f).board.entries()[0].members == Members{1, 4});
  Control g(kForever);
  CHECK(temper(problem, {annealing(1), 5}, g).board.entries().size() == 1);
  CHECK(descend(problem, {}, 2, 3, 1, 0, e).board.entries().size() == 1);
}

TEST_CASE("other weights share the rows") {
  const auto model = made::pool(2, 6, 9).model();
  const auto other = model.reweighted({1, 0, 0, 0});
  CHECK(other.row(3) == model.row(3));
  Evaluator evaluator(model), changed(other);
  const auto sums = sum_rows(model, {0, 4});
  CHECK(changed.loss(sums.data()) == evaluator.components(sums.data())[0]);
}

TEST_CASE("problems that do not fit are refused") {
  const auto model = made::pool(2, 6, 3).model();
  CHECK_THROWS_AS(Problem(model, 0), std::invalid_argument);
  CHECK_THROWS_AS(Problem(model, 7), std::invalid_argument);
  CHECK_THROWS_AS(Problem(model, 2, {0}, {0, 1}, {}, {}), std::invalid_argument);
  CHECK_THROWS_AS(Problem(model, 2, {0}, {6}, {}, {}), std::invalid_argument);
  CHECK_THROWS_AS(Problem(model, 1, {0, 1}, {}, {}, {}), std::invalid_argument);
  LinearConstraint most{{1, 1, 1, 1, 1, 1}, 0, 1};
  CHECK_THROWS_AS(Problem(model, 2, {}, {0, 1, 2}, {most}, {0, 1}), std::invalid_argument);
  LinearConstraint negative{{1, 1, 1, -1, 1, 1}, 0, 1};
  CHECK_THROWS_AS(Problem(model, 1, {}, {0, 1, 2}, {negative}, {0}), std::invalid_argument);
}
