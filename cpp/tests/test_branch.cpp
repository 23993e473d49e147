#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "branch.hpp"
#include "enumerate.hpp"
#include "made_problem.hpp"
#include "minorant.hpp"

using namespace fedsel;

namespace {

// All clients but the first, which has no records.
Problem others(const LossModel& model, std::size_t k) {
  Members free(model.clients() - 1);
  std::iota(free.begin(), free.end(), 1u);
  return Problem(model, k, {}, free, {}, {});
}

template <class Visit>
void every_federation(const Problem& problem, Visit visit) {
  const Members& free = problem.free();
  for (std::uint32_t bits = 0; bits < (1u << free.size()); ++bits) {
    if (static_cast<std::size_t>(__builtin_popcount(bits)) != problem.choices()) continue;
    Members members = problem.fixed();
    for (std::size_t i = 0; i < free.size(); ++i)
      if (bits >> i & 1) members.push_back(free[i]);
    std::sort(members.begin(), members.end());
    visit(members);
  }
}

BranchOptions options(const Problem& problem, std::vector<double> gaps = {0.1, 0.01, 0.0}) {
  BranchOptions result{problem.any(), std::move(gaps), 1'000'000, 3, 1};
  result.most_evaluated = 3;  // so that small problems are split as well
  return result;
}

}  // namespace

TEST_CASE("the minorant is below the loss of every federation, and touches it where all are alike") {
  std::size_t compared = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const auto pool = made::consistent_pool(seed, 10, 3 + seed % 2);
    const auto model = pool.model();
    const Problem whole = others(model, 1 + seed % 8);
    if (!Minorant::applies(whole)) continue;
    // As a subproblem of the search too: some clients in, some out.
    const std::size_t in = seed % std::min<std::size_t>(whole.k(), 3);
    Members fixed(whole.free().begin(), whole.free().begin() + static_cast<std::ptrdiff_t>(in));
    Members free(whole.free().begin() + static_cast<std::ptrdiff_t>(in), whole.free().end() - (whole.k() < 6 ? 2 : 0));
    const Problem part = whole.restricted(fixed, free);
    Evaluator evaluator(model);
    for (const Problem* problem : {&whole, &part}) {
      const Minorant minorant(*problem, problem->any());
      CHECK(minorant.allowance() < 1e-6);
      CHECK(std::binary_search(problem->free().begin(), problem->free().end(), minorant.farthest()));
      every_federation(*problem, [&](const Members& members) {
        const double loss = evaluator.loss(sum_rows(model, members).data());
        REQUIRE(minorant.model().loss(members) <= loss + minorant.allowance());
        ++compared;
      });
    }
  }
  CHECK(compared > 10'000);

  auto alike = made::consistent_pool(1, 6, 4);
  for (std::size_t i = 0; i < 6; ++i)
    std::copy_n(alike.counts.data() + 5 * alike.cells, alike.cells, alike.counts.data() + i * alike.cells);
  const auto model = alike.model();
  const Problem problem(model, 3);
  Evaluator evaluator(model);
  CHECK(Minorant(problem, {0, 1, 2}).model().loss({1, 2, 4}) ==
        doctest::Approx(evaluator.loss(sum_rows(model, {1, 2, 4}).data())).epsilon(1e-9));
}

TEST_CASE("branch and bound finds what enumeration finds") {
  std::size_t applied = 0, nodes = 0;
  for (unsigned seed = 0; seed < 2500; ++seed) {
    const auto pool = made::consistent_pool(seed, 7 + seed % 3, 3);
    const auto model = pool.model();
    const Problem problem = others(model, 1 + seed % 5);
    Control control(made::kForever), again(made::kForever);
    const auto result = branch(problem, options(problem), control);
    if (!result.applies) continue;
    ++applied;
    nodes += result.nodes;
    const auto expected = enumerate(problem, 1, 1, again).board.entries()[0];
    REQUIRE(result.optimal);
    REQUIRE(result.board.entries()[0].loss == doctest::Approx(expected.loss).epsilon(1e-12));
    REQUIRE(result.bound == result.board.entries()[0].loss);
  }
  CHECK(applied > 2'300);
  CHECK(nodes > 4 * applied);
}

TEST_CASE("branch and bound keeps constraints, fixed and excluded clients") {
  std::size_t applied = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    auto pool = made::consistent_pool(seed, 10, 3);
    std::copy_n(pool.counts.data() + 3 * pool.cells, pool.cells, pool.counts.data());  // a first client with records
    const auto model = pool.model();
    const Problem problem = made::constrained(model, 4);
    Control control(made::kForever), again(made::kForever);
    const auto result = branch(problem, options(problem), control);
    if (!result.applies) continue;
    ++applied;
    const auto expected = enumerate(problem, 1, 1, again).board.entries()[0];
    REQUIRE(result.optimal);
    REQUIRE(result.board.entries()[0].loss == doctest::Approx(expected.loss).epsilon(1e-12));
    for (const auto& entry : result.board.entries()) REQUIRE(made::meets(problem, entry.members));
  }
  CHECK(applied > 250);
}

TEST_CASE("what does not close leaves a bound that holds") {
  std::size_t open = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const auto pool = made::consistent_pool(seed, 12, 4);
    const auto model = pool.model();
    const Problem problem = others(model, 4);
    auto few = options(problem, {5.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.0});
    few.most_nodes = 20;
    Control control(made::kForever), again(made::kForever);
    const auto result = branch(problem, few, control);
    if (!result.applies) continue;
    CHECK(result.nodes <= 20);
    const double best = enumerate(problem, 1, 1, again).board.entries()[0].loss;
    REQUIRE(result.bound <= best + 1e-12);
    REQUIRE(result.board.entries()[0].loss >= best - 1e-12);
    open += !result.optimal;
  }
  CHECK(open > 20);
}

TEST_CASE("the number of threads does not matter") {
  const auto pool = made::consistent_pool(5, 16, 5);
  const auto model = pool.model();
  const Problem problem = others(model, 6);
  auto one = options(problem), two = one;
  two.threads = 2;
  Control first(made::kForever), second(made::kForever);
  const auto a = branch(problem, one, first), b = branch(problem, two, second);
  REQUIRE(a.applies);
  CHECK(a.nodes == b.nodes);
  CHECK(a.evaluated == b.evaluated);
  CHECK(a.bound == b.bound);
  REQUIRE(a.board.entries().size() == b.board.entries().size());
  for (std::size_t i = 0; i < a.board.entries().size(); ++i) {
    CHECK(a.board.entries()[i].loss == b.board.entries()[i].loss);
    CHECK(a.board.entries()[i].members == b.board.entries()[i].members);
  }
}

TEST_CASE("steps of any length end at the same state") {
  const auto pool = made::consistent_pool(5, 14, 4);
  const auto model = pool.model();
  const Problem problem = others(model, 5);
  const auto chosen = options(problem);
  Control control(made::kForever);
  const auto whole = branch(problem, chosen, control);
  REQUIRE(whole.nodes > 30);
  auto state = begin_branch(problem, chosen);
  for (std::size_t step = 1; !state.finished; step = step % 5 + 1) {
    advance_branch(problem, chosen, step, state, control);
    REQUIRE((state.finished || !state.open.empty()));
  }
  CHECK(state.optimal);
  CHECK(state.nodes == whole.nodes);
  CHECK(state.evaluated == whole.evaluated);
  CHECK(state.bound == whole.bound);
  CHECK(state.board.entries()[0].members == whole.board.entries()[0].members);
}

TEST_CASE("an enumeration in parts is one in one") {
  const auto pool = made::consistent_pool(6, 14, 4);
  const auto model = pool.model();
  for (const std::size_t k : {1, 2, 5}) {
    const Problem problem = others(model, k);
    Control one(made::kForever), parts(made::kForever);
    const auto whole = enumerate(problem, 5, 1, one).board.entries();
    std::vector<Candidate> known;
    const std::uint64_t blocks = enumeration_blocks(problem);
    for (std::uint64_t first = 0; first < blocks; first += 3)
      known = enumerate(problem, 5, 2, parts, {first, first + 3}, known).board.entries();
    CHECK(parts.evaluations == binomial(13, k));
    REQUIRE(known.size() == whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(known[i].members == whole[i].members);
  }
}

TEST_CASE("stopped branch and bound claims nothing, nor does one without bounds") {
  const auto pool = made::consistent_pool(5, 12, 4);
  const auto model = pool.model();
  const Problem problem = others(model, 4);
  Control stopped(0.0);
  const auto result = branch(problem, options(problem), stopped);
  CHECK_FALSE(result.optimal);
  CHECK(result.bound == -made::kForever);
  CHECK(result.board.entries().size() == 1);

  Control control(made::kForever);
  const Problem empty_client(model, 4);  // the first client has no records
  CHECK_FALSE(branch(empty_client, options(empty_client), control).applies);
  const auto separate = pool.separate_model();
  const Problem disagree = others(separate, 4);
  CHECK_FALSE(branch(disagree, options(disagree), control).applies);
}
