#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>

#include "subgroup_search.hpp"

using namespace fedsel;

namespace {

// Codes of three columns, one a code type, with conditions that overlap, and outcomes of up to `largest`.
struct MadeRows {
  std::vector<std::uint8_t> a;
  std::vector<std::uint16_t> b;
  std::vector<std::int32_t> c;
  std::vector<std::int64_t> outcomes;
  std::vector<Condition> conditions{{0, {{0, 0}}},         {0, {{1, 1}}}, {0, {{2, 2}}},
                                    {0, {{255, 255}}},     {1, {{0, 2}}}, {1, {{2, 5}}},
                                    {1, {{0, 0}, {4, 4}}}, {2, {{0, 0}}}, {2, {{1, 2}}}};

  MadeRows(std::size_t rows, std::int64_t largest, unsigned seed) {
    std::mt19937 random(seed);
    for (std::size_t r = 0; r < rows; ++r) {
      a.push_back(static_cast<std::uint8_t>(random() % 4 == 3 ? 255 : random() % 3));
      b.push_back(static_cast<std::uint16_t>(random() % 6));
      c.push_back(static_cast<std::int32_t>(random() % 4) - 1);
      outcomes.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(largest + 1)));
      if (a.back() == 1 && b.back() < 3) outcomes.back() = largest;
    }
    outcomes.front() = 0;
    outcomes.back() = largest;
  }

  std::vector<CodeColumn> columns() const {
    return {{a.data(), 1, CodeType::u8}, {b.data(), 2, CodeType::u16}, {c.data(), 4, CodeType::i32}};
  }

  BitTable table(Level level = Level::plain, std::size_t threads = 1) const {
    return BitTable(columns(), conditions, outcomes, 1.0, threads, level);
  }

  bool holds(std::size_t condition, std::size_t row) const {
    const std::int64_t code = conditions[condition].variable == 0   ? a[row]
                              : conditions[condition].variable == 1 ? std::int64_t{b[row]}
                                                                    : std::int64_t{c[row]};
    for (const auto& [first, last] : conditions[condition].ranges)
      if (code >= first && code <= last) return true;
    return false;
  }

  Tally tally(const Description& description) const {
    std::int64_t sum = 0;
    for (const auto outcome : outcomes) sum += outcome;
    Tally result;
    for (std::size_t row = 0; row < outcomes.size(); ++row) {
      bool covered = true;
      for (const auto condition : description) covered = covered && holds(condition, row);
      if (!covered) continue;
      const bool high = outcomes[row] * static_cast<std::int64_t>(outcomes.size()) > sum;
      (high ? result.high_rows : result.low_rows) += 1;
      (high ? result.high_sum : result.low_sum) += outcomes[row];
    }
    return result;
  }
};

bool equal(const Tally& a, const Tally& b) {
  return a.high_rows == b.high_rows && a.low_rows == b.low_rows && a.high_sum == b.high_sum && a.low_sum == b.low_sum;
}

bool equal(const std::vector<Subgroup>& a, const std::vector<Subgroup>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Subgroup& x, const Subgroup& y) {
    return x.quality == y.quality && x.conditions == y.conditions && equal(x.tally, y.tally);
  });
}

void for_all_descriptions(std::size_t conditions, std::size_t depth, const std::function<void(const Description&)>& use,
                          Description prefix = {}) {
  for (std::uint32_t c = prefix.empty() ? 0 : prefix.back() + 1; c < conditions; ++c) {
    Description next(prefix);
    next.push_back(c);
    use(next);
    if (next.size() < depth) for_all_descriptions(conditions, depth, use, next);
  }
}

std::vector<Subgroup> best_of_all(const MadeRows& rows, const Quality& quality, const SubgroupOptions& options) {
  std::vector<Subgroup> all;
  for_all_descriptions(rows.conditions.size(), options.depth, [&](const Description& description) {
    const Tally tally = rows.tally(description);
    if (!quality.reportable(tally)) return;
    const double value = quality.value(tally);
    if (value > options.floor) all.push_back({value, description, tally});
  });
  std::sort(all.begin(), all.end(), ranks_before);
  if (all.size() > options.keep) all.resize(options.keep);
  return all;
}

std::vector<Level> levels() {
  std::vector<Level> result;
  for (Level level : {Level::plain, Level::avx2, Level::avx512})
    if (supported(level)) result.push_back(level);
  return result;
}

std::vector<Quality> qualities(const Outcome& outcome, const Support& support) {
  std::vector<Quality> result;
  for (Direction direction : {Direction::higher, Direction::lower, Direction::both}) {
    for (double exponent : {0.0, 0.3, 0.5, 1.0})
      result.emplace_back(Measure::standard, exponent, direction, outcome, support);
    result.emplace_back(Measure::piatetsky_shapiro, 1.0, direction, outcome, support);
    if (outcome.largest > 1) continue;
    result.emplace_back(Measure::lift, 1.0, direction, outcome, support);
    result.emplace_back(Measure::chi_squared, 1.0, direction, outcome, support);
  }
  return result;
}

}  // namespace

TEST_CASE("tallies of refinements equal a loop over rows, for every level and any number of threads") {
  for (std::size_t rows : {2u, 63u, 513u, 40000u})
    for (std::int64_t largest : {1, 2, 1000}) {
      const MadeRows made(rows, largest, static_cast<unsigned>(rows));
      const std::vector<Description> parents{{}, {0}, {1}, {4}, {0, 4}, {1, 6, 8}};
      const std::vector<std::uint32_t> conditions{0, 1, 2, 3, 4, 5, 6, 7, 8};
      for (Level level : levels())
        for (std::size_t threads : {1u, 3u}) {
          const auto counted = count_refinements(made.table(level, threads),
                                                 {{parents, conditions}, {{{2}}, {}}, {{{1}, {5}}, {0, 8}}}, threads);
          const auto& tallies = counted[0];
          CHECK(counted[1].empty());
          CHECK(equal(counted[2][3], made.tally({5, 8})));
          for (std::size_t p = 0; p < parents.size(); ++p)
            for (const std::uint32_t c : conditions) {
              Description description(parents[p]);
              description.push_back(c);
              CHECK(equal(tallies[p * conditions.size() + c], made.tally(description)));
            }
        }
    }
}

TEST_CASE("no refinement exceeds the bound of a description") {
  for (std::int64_t largest : {1, 50})
    for (std::int64_t least : {1, 30}) {
      const MadeRows made(300, largest, 3);
      for (const Quality& quality : qualities(made.table().outcome(), {least, 200}))
        for_all_descriptions(made.conditions.size(), 3, [&](const Description& description) {
          const double bound = quality.bound(made.tally(description));
          for (std::uint32_t c = 0; c < made.conditions.size(); ++c) {
            Description next(description);
            next.push_back(c);
            const Tally tally = made.tally(next);
            if (quality.reportable(tally)) CHECK(quality.value(tally) <= bound);
          }
        });
    }
}

TEST_CASE("the bound of any subset of rows holds") {
  std::mt19937 random(7);
  for (std::int64_t largest : {1, 9}) {
    const MadeRows made(60, largest, 11);
    const Outcome outcome = made.table().outcome();
    const Tally whole = made.tally({1});
    std::vector<Quality> all = qualities(outcome, {1, 60});
    for (const Quality& quality : qualities(outcome, {8, 60})) all.push_back(quality);
    const double mean = outcome.mean();
    for (int draw = 0; draw < 2000; ++draw) {
      Tally subset;
      const unsigned share = 1 + random() % 10;
      for (std::size_t row = 0; row < 60; ++row) {
        if (!made.holds(1, row)) continue;
        const bool high = static_cast<double>(made.outcomes[row]) > mean;
        if (random() % 10 >= (high ? share : 10 - share)) continue;
        (high ? subset.high_rows : subset.low_rows) += 1;
        (high ? subset.high_sum : subset.low_sum) += made.outcomes[row];
      }
      for (const Quality& quality : all)
        if (subset.rows() > 0 && quality.reportable(subset)) CHECK(quality.value(subset) <= quality.bound(whole));
    }
  }
}

TEST_CASE("the exact search finds the best of all descriptions, ties included") {
  for (std::int64_t largest : {1, 50})
    for (const Support& support : {Support{}, Support{25, 200}}) {
      const MadeRows made(400, largest, 5);
      const BitTable table = made.table(best_level());
      for (const Quality& quality : qualities(table.outcome(), support))
        for (std::size_t depth : {1u, 2u, 4u})
          for (std::size_t keep : {1u, 7u, 400u}) {
            const SubgroupOptions options{depth, keep, 0.0, 1};
            Control control(1e18);
            CHECK(equal(search_exact(table, quality, options, control), best_of_all(made, quality, options)));
          }
    }
}

TEST_CASE("marginals find what the exact search finds") {
  std::mt19937 random(13);
  std::vector<std::vector<std::uint8_t>> codes(4, std::vector<std::uint8_t>(70000));
  std::vector<std::uint8_t> outcomes(70000);
  for (std::size_t row = 0; row < 70000; ++row) {
    for (std::size_t v = 0; v < 4; ++v) codes[v][row] = static_cast<std::uint8_t>(random() % (2 + v));
    outcomes[row] = random() % 4 < (codes[1][row] == 1 ? 2u : 1u);
  }
  std::vector<CategoryColumn> columns;
  std::vector<CodeColumn> plain;
  std::vector<Condition> conditions;
  for (std::uint32_t v = 0; v < 4; ++v) {
    plain.push_back({codes[v].data(), 1, CodeType::u8});
    columns.push_back({plain.back(), {}});
    for (std::uint32_t code = 0; code < 2 + v; ++code) {
      const bool wanted = v != 2 || code != 1;  // one category has no condition
      columns.back().conditions.push_back(wanted ? static_cast<std::int64_t>(conditions.size()) : -1);
      if (wanted) conditions.push_back({v, {{code, code}}});
    }
  }
  const BitTable table(plain, conditions, {outcomes.begin(), outcomes.end()}, 1.0, 1, best_level());
  for (const Quality& quality : qualities(table.outcome(), {50, 30000}))
    for (std::size_t depth : {1u, 2u, 3u})
      for (std::size_t threads : {1u, 2u}) {
        const SubgroupOptions options{depth, 25, 0.0, threads};
        Control control(1e18);
        CHECK(equal(search_marginals(columns, outcomes.data(), outcomes.size(), quality, options, control),
                    search_exact(table, quality, options, control)));
      }
}

TEST_CASE("a beam as wide as there are descriptions is exact, a narrow one follows its rule") {
  const MadeRows made(400, 1, 5);
  const BitTable table = made.table();
  const Quality quality(Measure::standard, 1.0, Direction::higher, table.outcome(), {});
  const SubgroupOptions options{3, 12, 0.0, 1};
  Control control(1e18);
  CHECK(equal(search_beam(table, quality, options, {1000}, control), best_of_all(made, quality, options)));

  // Width 1: refine the best description as long as a refinement takes its place.
  std::vector<Subgroup> seen;
  Description parent;
  for (std::size_t round = 0; round < 3; ++round) {
    for (std::uint32_t c = 0; c < made.conditions.size(); ++c) {
      if (std::binary_search(parent.begin(), parent.end(), c)) continue;
      const Description description = refined(parent, c);
      const Tally tally = made.tally(description);
      if (tally.rows() > 0 && quality.value(tally) > 0.0) seen.push_back({quality.value(tally), description, tally});
    }
    std::sort(seen.begin(), seen.end(), ranks_before);
    if (seen.front().conditions.size() != round + 1) break;
    parent = seen.front().conditions;
  }
  if (seen.size() > options.keep) seen.resize(options.keep);
  CHECK(equal(search_beam(table, quality, options, {1}, control), seen));
}

TEST_CASE("equal qualities are listed by number and order of conditions") {
  SubgroupList list(3, 0.0);
  for (const Description& d : {Description{2, 5}, Description{7}, Description{1, 9}, Description{1, 9}, Description{3}})
    list.offer({1.0, d, {}});
  list.offer({0.0, {0}, {}});
  REQUIRE(list.subgroups().size() == 3);
  CHECK(list.subgroups()[0].conditions == Description{3});
  CHECK(list.subgroups()[1].conditions == Description{7});
  CHECK(list.subgroups()[2].conditions == Description{1, 9});
}

TEST_CASE("diverse choices equal their definition") {
  const MadeRows made(700, 1, 9);
  const BitTable table = made.table(best_level());
  const Quality quality(Measure::standard, 0.5, Direction::higher, table.outcome(), {});
  Control control(1e18);
  const auto candidates = search_exact(table, quality, {3, 40, 0.0, 1}, control);
  const double alpha = 0.7;
  std::vector<int> times(made.outcomes.size(), 0);
  std::vector<std::size_t> expected;
  for (int step = 0; step < 8; ++step) {
    double best = -1.0;
    std::size_t position = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (std::find(expected.begin(), expected.end(), i) != expected.end()) continue;
      double weight = 0.0;
      for (std::size_t row = 0; row < times.size(); ++row) {
        bool covered = true;
        for (const auto condition : candidates[i].conditions) covered = covered && made.holds(condition, row);
        if (covered) weight += std::pow(alpha, times[row]);
      }
      const double score = candidates[i].quality * weight / static_cast<double>(candidates[i].tally.rows());
      if (score > best + 1e-12) best = score, position = i;
    }
    expected.push_back(position);
    for (std::size_t row = 0; row < times.size(); ++row) {
      bool covered = true;
      for (const auto condition : candidates[position].conditions) covered = covered && made.holds(condition, row);
      times[row] += covered;
    }
  }
  CHECK(select_diverse(table, candidates, 8, Diversity::cover, alpha, 2, control) == expected);
  CHECK(select_diverse(table, candidates, 3, Diversity::none, alpha, 1, control) == std::vector<std::size_t>{0, 1, 2});

  const std::vector<Subgroup> made_up{
      {2.0, {1}, {9, 0, 0, 0}}, {2.0, {1, 4}, {9, 0, 0, 0}}, {2.0, {2, 3}, {9, 0, 0, 0}}, {1.0, {1, 5}, {9, 0, 0, 0}}};
  CHECK(select_diverse(table, made_up, 4, Diversity::description, alpha, 1, control) ==
        std::vector<std::size_t>{0, 2, 3});
}

TEST_CASE("a stopped search returns what it has") {
  const MadeRows made(400, 1, 5);
  const BitTable table = made.table();
  const Quality quality(Measure::standard, 0.0, Direction::higher, table.outcome(), {});
  Control control(1e18);
  control.interrupt();
  const auto found = search_exact(table, quality, {4, 5, 0.0, 1}, control);
  for (const Subgroup& subgroup : found) CHECK(subgroup.conditions.size() == 1);
  CHECK(found.size() <= 5);
  CHECK(control.reason() == StopReason::interrupted);
}

TEST_CASE("what cannot be searched is refused") {
  MadeRows made(50, 1, 2);
  const Outcome outcome = made.table().outcome();
  CHECK_THROWS_AS(Quality(Measure::standard, 1.5, Direction::higher, outcome, {}), std::invalid_argument);
  const MadeRows numbers(50, 9, 2);
  CHECK_THROWS_AS(Quality(Measure::lift, 1.0, Direction::higher, numbers.table().outcome(), {}), std::invalid_argument);
  made.conditions[0].variable = 3;
  CHECK_THROWS_AS(made.table(), std::invalid_argument);
  made.conditions[0] = {0, {{2, 1}}};
  CHECK_THROWS_AS(made.table(), std::invalid_argument);
  made.conditions[0] = {0, {{0, 0}}};
  std::fill(made.outcomes.begin(), made.outcomes.end(), 1);
  CHECK_THROWS_WITH_AS(made.table(), "the outcome must differ between rows", std::invalid_argument);
  made.outcomes[0] = -1;
  CHECK_THROWS_AS(made.table(), std::invalid_argument);
}
