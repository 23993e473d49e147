#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "count.hpp"

using namespace fedsel;

namespace {

std::vector<VariableSet> all_sets(std::uint32_t variables) {
  std::vector<VariableSet> sets;
  for (std::uint32_t a = 0; a < variables; ++a) {
    sets.push_back({a});
    for (std::uint32_t b = a + 1; b < variables; ++b) {
      sets.push_back({a, b});
      for (std::uint32_t c = b + 1; c < variables; ++c) sets.push_back({a, b, c});
    }
  }
  return sets;
}

}  // namespace

TEST_CASE("every request is covered once, by a joint that contains it") {
  const std::vector<std::uint32_t> domain{5, 9, 1, 18, 2, 300, 7};
  const auto sets = all_sets(7);
  for (std::size_t limit : {1u, 50u, 4096u, 100000u}) {
    std::vector<int> times(sets.size(), 0);
    for (const auto& joint : cover(domain, sets, limit))
      for (auto r : joint.requests) {
        ++times[r];
        CHECK(std::includes(joint.variables.begin(), joint.variables.end(), sets[r].begin(), sets[r].end()));
      }
    CHECK(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; }));
  }
}

TEST_CASE("counts equal a loop over rows, for all code types and strides") {
  std::mt19937 random(2);
  const std::vector<std::uint32_t> domain{3, 1, 7, 40, 5};
  const auto sets = all_sets(5);
  for (std::size_t rows : {0u, 1u, 2u, 2047u, 2048u, 2049u, 9000u}) {
    std::vector<std::vector<std::uint8_t>> u8(5, std::vector<std::uint8_t>(rows));
    std::vector<std::uint16_t> u16(2 * rows);
    std::vector<std::int32_t> i32(rows);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t v = 0; v < 5; ++v) u8[v][r] = static_cast<std::uint8_t>(random() % domain[v]);
      u16[2 * r] = u8[2][r];
      i32[rows - 1 - r] = u8[3][r];  // stored backwards
    }
    const std::vector<CodeColumn> columns{{u8[0].data(), 1, CodeType::u8},
                                          {u8[1].data(), 1, CodeType::u8},
                                          {u16.data(), 4, CodeType::u16},
                                          {i32.data() + (rows ? rows - 1 : 0), -4, CodeType::i32},
                                          {u8[4].data(), 1, CodeType::u8}};
    std::vector<std::int64_t> expected;
    for (const auto& set : sets) {
      std::size_t cells = 1;
      for (auto v : set) cells *= domain[v];
      const std::size_t start = expected.size();
      expected.resize(start + cells, 0);
      for (std::size_t r = 0; r < rows; ++r) {
        std::size_t key = 0;
        for (auto v : set) key = key * domain[v] + u8[v][r];
        ++expected[start + key];
      }
    }
    std::vector<std::int64_t> counts(expected.size(), -1);
    count_marginals(columns, rows, domain, sets, counts.data());
    CHECK(counts == expected);
  }
}

TEST_CASE("joints of many binary variables") {
  std::mt19937 random(5);
  const std::vector<std::uint32_t> domain(14, 2);
  std::vector<std::vector<std::uint8_t>> codes(14, std::vector<std::uint8_t>(40000));
  std::vector<CodeColumn> columns;
  for (auto& column : codes) {
    for (auto& code : column) code = random() % 3 == 0;
    columns.push_back({column.data(), 1, CodeType::u8});
  }
  std::vector<VariableSet> sets;
  for (std::uint32_t a = 0; a < 14; ++a)
    for (std::uint32_t b = a + 1; b < 14; ++b) sets.push_back({a, b});
  CHECK(cover(domain, sets, 8192)[0].variables.size() == 13);
  std::vector<std::int64_t> counts(4 * sets.size());
  count_marginals(columns, 40000, domain, sets, counts.data());
  for (std::size_t s = 0; s < sets.size(); ++s) {
    std::int64_t expected[4] = {};
    for (std::size_t r = 0; r < 40000; ++r) ++expected[codes[sets[s][0]][r] * 2 + codes[sets[s][1]][r]];
    CHECK(std::equal(expected, expected + 4, counts.begin() + static_cast<std::ptrdiff_t>(4 * s)));
  }
}

TEST_CASE("tables of more than 2^16 cells use wide keys") {
  std::mt19937 random(4);
  const std::vector<std::uint32_t> domain{500, 400};
  std::vector<std::int32_t> a(5000), b(5000);
  std::vector<std::int64_t> expected(200000, 0), counts(200000, 0);
  for (std::size_t r = 0; r < a.size(); ++r) {
    a[r] = static_cast<std::int32_t>(random() % 500);
    b[r] = static_cast<std::int32_t>(random() % 400);
    ++expected[static_cast<std::size_t>(a[r] * 400 + b[r])];
  }
  count_marginals({{a.data(), 4, CodeType::i32}, {b.data(), 4, CodeType::i32}}, a.size(), domain, {{0, 1}},
                  counts.data());
  CHECK(counts == expected);
}

TEST_CASE("a code outside its domain is named") {
  std::vector<std::int32_t> codes(3000, 0);
  std::vector<std::int64_t> counts(4);
  const std::vector<CodeColumn> columns{{codes.data(), 4, CodeType::i32}};
  codes[2500] = -1;
  CHECK_THROWS_WITH_AS(count_marginals(columns, 3000, {4}, {{0}}, counts.data()),
                       "codes of variable 0 must be between 0 and 3, got -1 in row 2500", std::invalid_argument);
  codes[2500] = 65536;  // would be 0 in sixteen bits
  CHECK_THROWS_AS(count_marginals(columns, 3000, {4}, {{0}}, counts.data()), std::invalid_argument);
}
