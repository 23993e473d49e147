#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "agreement.hpp"
#include "philox.hpp"

using namespace fedsel;

namespace {

// Margins of one total, and cells that may be far from having them.
struct Made {
  AgreedTable table;
  std::int32_t total;
  std::vector<std::int32_t> margins;
  std::vector<double> cells;

  explicit Made(std::uint64_t seed) {
    Philox random(seed, 0);
    table = {1 + random.below(9), 1 + random.below(9), 0, 0};
    table.column_margin = table.rows;
    total = static_cast<std::int32_t>(random.below(3) == 0 ? random.below(20) : random.below(1u << 30));
    std::vector<double> shares(table.rows + table.columns);
    for (double& share : shares) share = random.below(4) == 0 ? 0.0 : random.below(1000);
    margins.resize(shares.size());
    largest_remainders(shares.data(), table.rows, total, margins.data());
    largest_remainders(shares.data() + table.rows, table.columns, total, margins.data() + table.rows);
    for (std::size_t i = 0; i < table.rows; ++i)
      for (std::size_t j = 0; j < table.columns; ++j)
        cells.push_back(random.below(3) == 0 ? 0.0 : random.below(1u << 20) / 1024.0);
  }
};

}  // namespace

TEST_CASE("largest remainders") {
  const std::vector<double> shares{0.5, 0.3, 0.2, 0.0};
  std::vector<std::int32_t> out(4);
  largest_remainders(shares.data(), 4, 9, out.data());  // 4.5, 2.7, 1.8, 0
  CHECK(out == std::vector<std::int32_t>{4, 3, 2, 0});
  const std::vector<double> none(4, 0.0);
  largest_remainders(none.data(), 4, 6, out.data());
  CHECK(std::accumulate(out.begin(), out.end(), 0) == 6);
}

TEST_CASE("rounded tables have their margins exactly, whatever the cells") {
  TableFitter fitter;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Made made(seed);
    std::vector<std::int32_t> out(made.cells.size());
    fitter.round(made.table, made.margins.data(), made.cells.data(), out.data());
    std::vector<std::int32_t> sums(made.margins.size(), 0);
    for (std::size_t c = 0; c < out.size(); ++c) {
      REQUIRE(out[c] >= 0);
      sums[c / made.table.columns] += out[c];
      sums[made.table.rows + c % made.table.columns] += out[c];
    }
    REQUIRE(sums == made.margins);
  }
}

TEST_CASE("a table that has its margins is rounded by a few units at most") {
  TableFitter fitter;
  Philox random(7, 0);
  for (int round = 0; round < 200; ++round) {
    const AgreedTable table{6, 5, 0, 6};
    std::vector<std::int32_t> whole(30), margins(11, 0), out(30);
    for (std::size_t c = 0; c < 30; ++c) {
      whole[c] = static_cast<std::int32_t>(random.below(100'000));
      margins[c / 5] += whole[c];
      margins[6 + c % 5] += whole[c];
    }
    std::vector<double> cells(whole.begin(), whole.end());
    fitter.round(table, margins.data(), cells.data(), out.data());
    CHECK(out == whole);
    // The same, moved around a cycle so that margins stay: no cell is whole any more.
    cells.assign(whole.begin(), whole.end());
    cells[0] += 0.4, cells[1] -= 0.4, cells[5] -= 0.4, cells[6] += 0.4;
    fitter.round(table, margins.data(), cells.data(), out.data());
    for (std::size_t c = 0; c < 30; ++c) CHECK(std::abs(out[c] - whole[c]) <= 1);
  }
}

TEST_CASE("raking keeps ratios of products and reaches the margins") {
  TableFitter fitter;
  const AgreedTable table{2, 2, 0, 2};
  std::vector<double> cells{1, 2, 3, 4};
  const std::vector<double> margins{30, 70, 45, 55};
  fitter.rake(table, margins.data(), 1e-9, cells.data());
  CHECK(cells[0] * cells[3] / (cells[1] * cells[2]) == doctest::Approx(4.0 / 6.0).epsilon(1e-9));
  CHECK(cells[0] + cells[1] == doctest::Approx(30));
  CHECK(cells[0] + cells[2] == doctest::Approx(45));
  std::vector<double> empty(4, 0.0);  // nothing known: independence
  fitter.rake(table, margins.data(), 1e-9, empty.data());
  CHECK(empty[0] == doctest::Approx(30 * 45 / 100.0));
}
