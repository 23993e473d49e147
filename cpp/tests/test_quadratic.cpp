#include <doctest/doctest.h>

#include <limits>
#include <map>
#include <mutex>

#include "certify.hpp"
#include "enumerate.hpp"
#include "made_model.hpp"
#include "quadratic.hpp"
#include "quadratic_search.hpp"

using namespace fedsel;

namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

Members everyone(const made::Pool& pool) {
  Members members;
  for (std::uint32_t i = 0; i < pool.clients; ++i) members.push_back(i);
  return members;
}

QuadraticModel quadratic(const LossModel& model, const Members& reference) {
  Control control(kForever);
  return QuadraticModel(model, reference, 2, control);
}

// The second-order model written from its definition: the Taylor polynomial of the loss at the reference q, in the
// direction of W's size-weighted mean proportions.
double taylor(const made::Pool& pool, const std::vector<double>& records, const Members& reference,
              const Members& members) {
  const double weights[] = {2.0, 0.89, 0.11, -1.33};
  double result = 0.0;
  std::size_t offset = 0;
  for (const auto& spec : pool.tables) {
    const std::size_t size = spec.rows * spec.columns;
    const auto proportions = [&](const Members& who, bool clamp) {
      std::vector<double> cells(size, 0.0);
      for (auto client : who)
        for (std::size_t c = 0; c < size; ++c) cells[c] += pool.counts[client * pool.cells + offset + c];
      double total = 0.0;
      for (double& cell : cells) total += cell = clamp ? std::max(cell, 0.0) : cell;
      for (double& cell : cells) cell = total > 0.0 ? cell / total : -1.0;
      return cells;
    };
    const auto q = proportions(reference, true);
    std::vector<double> d(size, 0.0);
    double n = 0.0;
    for (auto client : members) n += records[client];
    for (auto client : members) {
      const auto p = proportions({client}, false);
      for (std::size_t c = 0; c < size; ++c)
        if (p[0] >= 0.0 || *std::max_element(p.begin(), p.end()) > 0.0) d[c] += records[client] / n * (p[c] - q[c]);
    }
    std::vector<double> row_q(spec.rows), column_q(spec.columns), row_d(spec.rows), column_d(spec.columns);
    for (std::size_t c = 0; c < size; ++c) {
      row_q[c / spec.columns] += q[c];
      column_q[c % spec.columns] += q[c];
      row_d[c / spec.columns] += d[c];
      column_d[c % spec.columns] += d[c];
    }
    double value = 0.0;
    for (std::size_t c = 0; c < size; ++c) {
      if (q[c] <= 0.0) continue;
      value += (q[c] + d[c]) * std::log2(q[c] / (row_q[c / spec.columns] * column_q[c % spec.columns]));
      value += d[c] * d[c] / q[c] / 2.0 / std::log(2.0);
    }
    for (std::size_t i = 0; i < spec.rows; ++i)
      if (row_q[i] > 0.0) value -= row_d[i] * row_d[i] / row_q[i] / 2.0 / std::log(2.0);
    for (std::size_t j = 0; j < spec.columns; ++j)
      if (column_q[j] > 0.0) value -= column_d[j] * column_d[j] / column_q[j] / 2.0 / std::log(2.0);
    result += weights[spec.component] * value;
    offset += size;
  }
  return result;
}

template <class Visit>
void every_subset(std::size_t n, std::size_t k, Visit visit) {
  for (std::uint32_t bits = 0; bits < (1u << n); ++bits) {
    if (static_cast<std::size_t>(__builtin_popcount(bits)) != k) continue;
    Members members;
    for (std::uint32_t c = 0; c < n; ++c)
      if (bits >> c & 1) members.push_back(c);
    visit(members);
  }
}

std::map<Members, double> search(const QuadraticSearch& search, double threshold, QuadraticCoverage& coverage) {
  Control control(kForever);
  std::mutex guard;
  std::map<Members, double> found;
  coverage = search.run(
      threshold,
      [&](const Members& members, double value, std::size_t) {
        const std::lock_guard lock(guard);
        CHECK(found.emplace(members, value).second);
        return true;
      },
      kNoLimit, control);
  return found;
}

}  // namespace

TEST_CASE("the second-order model is the Taylor polynomial of the loss") {
  for (unsigned seed = 0; seed < 12; ++seed) {
    const auto pool = seed % 2 ? made::pool(seed, 9, 4) : made::consistent_pool(seed, 9, 5);
    const auto model = pool.model();
    const auto records = model.records();
    for (const Members& reference : {everyone(pool), Members{1, 4, 5}}) {
      const auto approximation = quadratic(model, reference);
      REQUIRE(approximation.ready());
      for (const Members& members : {Members{3}, Members{1, 4, 5}, Members{0, 2, 7, 8}})
        CHECK(approximation.loss(members) == doctest::Approx(taylor(pool, records, reference, members)).epsilon(1e-9));
    }
  }
}

TEST_CASE("around a federation the model of it is exact") {
  const auto pool = made::consistent_pool(3, 9, 6);
  const Members members{1, 3, 8};
  CHECK(quadratic(pool.model(), members).loss(members) == doctest::Approx(made::loss(pool, members)).epsilon(1e-12));
}

TEST_CASE("swaps under the model equal fresh values") {
  const auto pool = made::consistent_pool(5, 12, 6);
  const auto model = quadratic(pool.model(), everyone(pool));
  Members members{1, 4, 7, 9};
  QuadraticState state(model, members);
  std::mt19937 random(1);
  for (int step = 0; step < 300; ++step) {
    const std::size_t position = random() % members.size();
    const std::uint32_t in = random() % 12;
    if (std::find(members.begin(), members.end(), in) != members.end()) continue;
    Members next = members;
    next[position] = in;
    CHECK(state.swapped_loss(members[position], in) == doctest::Approx(model.loss(next)).epsilon(1e-10));
    if (random() % 2) {
      state.swap(members[position], in);
      members = next;
      CHECK(state.loss() == doctest::Approx(model.loss(members)).epsilon(1e-10));
    }
  }
}

TEST_CASE("the search finds every federation under the threshold once, and accounts for the others") {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto pool = seed % 2 ? made::pool(seed, 13, 4) : made::consistent_pool(seed, 13, 5);
    for (Level level : {Level::plain, Level::avx2, Level::avx512}) {
      if (!supported(level)) continue;
      const auto model = pool.model(level);
      const auto approximation = quadratic(model, everyone(pool));
      for (std::size_t k = 1; k <= 13; ++k) {
        std::vector<double> values;
        every_subset(13, k, [&](const Members& members) { values.push_back(approximation.loss(members)); });
        std::sort(values.begin(), values.end());
        const Problem problem(model, k);
        for (double share : {0.0, 0.05, 1.0}) {
          const double threshold = values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
          std::map<Members, double> expected;
          every_subset(13, k, [&](const Members& members) {
            if (const double value = approximation.loss(members); value <= threshold) expected[members] = value;
          });
          QuadraticCoverage coverage;
          CHECK(search(QuadraticSearch(problem, approximation, 2), threshold, coverage) == expected);
          CHECK(coverage.complete);
          CHECK(coverage.enumerated + coverage.bounded == binomial(13, k));
        }
      }
    }
  }
}

TEST_CASE("bounds leave most of a larger pool out, and nothing else") {
  const auto pool = made::consistent_pool(2, 21, 6);
  const auto model = pool.model();
  const auto approximation = quadratic(model, everyone(pool));
  for (std::size_t k : {8u, 13u}) {
    std::vector<double> values;
    every_subset(21, k, [&](const Members& members) { values.push_back(approximation.loss(members)); });
    std::sort(values.begin(), values.end());
    for (std::size_t rank : {10u, 3000u}) {
      QuadraticCoverage one, two;
      const auto a = search(QuadraticSearch(Problem(model, k), approximation, 1), values[rank], one);
      const auto b = search(QuadraticSearch(Problem(model, k), approximation, 5), values[rank], two);
      CHECK(a.size() == rank + 1);
      CHECK(a == b);
      CHECK(one.bounded > binomial(21, k) / 2);
      CHECK(one.enumerated + one.bounded == binomial(21, k));
      CHECK(one.bounded == two.bounded);
      CHECK(one.prefixes == two.prefixes);
    }
  }
}

TEST_CASE("the search keeps constraints, fixed members and exclusions") {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const auto pool = made::consistent_pool(seed, 14, 5);
    const auto model = pool.model();
    const auto approximation = quadratic(model, everyone(pool));
    LinearConstraint cost;
    for (std::uint32_t client = 0; client < 14; ++client) cost.amounts.push_back(client * 5 % 7);
    cost.upper = 16;
    cost.lower = 9;
    Members free{1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13}, fallback;
    every_subset(14, 6, [&](const Members& members) {
      std::int64_t sum = 0;
      for (auto client : members) sum += cost.amounts[client];
      if (members[0] == 0 && std::find(members.begin(), members.end(), 5) == members.end() && sum >= 9 && sum <= 16)
        fallback = members;
    });
    REQUIRE_FALSE(fallback.empty());
    const Problem problem(model, 6, {0}, free, {cost}, fallback);
    std::map<Members, double> expected;
    const double threshold = approximation.loss(fallback) + 0.01;
    every_subset(14, 6, [&](const Members& members) {
      if (members[0] != 0 || std::find(members.begin(), members.end(), 5) != members.end()) return;
      const double value = approximation.loss(members);
      if (value <= threshold && Balance(problem, members).violation() == 0.0) expected[members] = value;
    });
    QuadraticCoverage coverage;
    CHECK(search(QuadraticSearch(problem, approximation, 2), threshold, coverage) == expected);
    CHECK(coverage.enumerated + coverage.bounded == binomial(12, 5));
  }
}

TEST_CASE("a search under the model ends when it is told to") {
  const auto pool = made::consistent_pool(2, 30, 4);
  const auto model = pool.model();
  const auto approximation = quadratic(model, everyone(pool));
  Control stopped(kForever), running(kForever);
  stopped.interrupt();
  const Problem problem(model, 15);
  const QuadraticSearch search(problem, approximation, 2), one(problem, approximation, 1);
  int calls = 0;
  const auto count = [&](const Members&, double, std::size_t) { return ++calls < 1; };
  CHECK_FALSE(search.run(1e3, count, kNoLimit, stopped).complete);
  CHECK(calls == 0);
  CHECK_FALSE(one.run(1e3, count, kNoLimit, running).complete);  // the first one found says stop
  CHECK(QuadraticSearch::fits(problem));
}

namespace {

CertifyOptions certification(Members known, std::size_t threads = 2) {
  return {std::move(known), 200, 100'000, kNoLimit, 3, threads, 7};
}

}  // namespace

TEST_CASE("the model certificate finds the optimum of pools that enumeration can check") {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const auto pool = made::consistent_pool(seed, 15, 5);
    const auto model = pool.model();
    for (std::size_t k : {3u, 7u, 14u}) {
      Control a(kForever), b(kForever), c(kForever);
      const Problem problem(model, k);
      const auto proof = enumerate(problem, 3, 1, a);
      Members known;
      for (std::uint32_t client = 0; client < k; ++client) known.push_back(client);
      const auto result = certify(problem, certification(known), b),
                 again = certify(problem, certification(known, 1), c);
      REQUIRE(result.outcome == CertifyOutcome::certified);
      CHECK(result.board.entries()[0].loss == doctest::Approx(proof.board.entries()[0].loss).epsilon(1e-11));
      CHECK(result.enumerated + result.bounded == binomial(15, k));
      CHECK(result.band >= 2.0 * std::max(result.random_error, result.best_error));
      CHECK(result.compared == std::min<std::uint64_t>(200, result.rechecked));
      CHECK(result.rechecked == again.rechecked);
      CHECK(result.band == again.band);
      CHECK(result.board.entries()[1].members == again.board.entries()[1].members);
    }
  }
}

TEST_CASE("a model certificate that cannot be had says why") {
  const auto pool = made::consistent_pool(1, 24, 5);
  const auto model = pool.model();
  const Problem problem(model, 12);
  Members known = problem.any();
  auto options = certification(known);
  options.most = 10;
  Control a(kForever), b(kForever);
  const auto wide = certify(problem, options, a);
  CHECK(wide.outcome == CertifyOutcome::too_wide);
  CHECK_FALSE(wide.board.entries().empty());
  options = certification(known);
  options.most = kNoLimit;
  options.most_prefixes = 100;
  Control c(kForever);
  CHECK(certify(problem, options, c).outcome == CertifyOutcome::too_long);
  b.interrupt();
  const auto stopped = certify(problem, certification(known), b);
  CHECK(stopped.outcome == CertifyOutcome::stopped);
  CHECK(stopped.board.entries()[0].members == known);
}
