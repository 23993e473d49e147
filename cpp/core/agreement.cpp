#include "agreement.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fedsel {
namespace {

constexpr int kMostSteps = 100;
constexpr double kNothing = 1e-12;        // of what independence expects: keeps a row of zeros from staying one
constexpr double kUnitsTolerance = 0.25;  // what rounding does is larger

double sum_of(const double* values, std::size_t count) { return std::accumulate(values, values + count, 0.0); }

}  // namespace

void largest_remainders(const double* shares, std::size_t count, std::int32_t total, std::int32_t* out) {
  const double sum = sum_of(shares, count);
  std::vector<double> remainders(count);
  std::int64_t left = total;
  for (std::size_t i = 0; i < count; ++i) {
    const double exact = sum > 0.0 ? shares[i] / sum * total : static_cast<double>(total) / static_cast<double>(count);
    out[i] = static_cast<std::int32_t>(exact);
    remainders[i] = exact - out[i];
    left -= out[i];
  }
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return remainders[a] > remainders[b]; });
  for (std::size_t i = 0; left > 0; i = (i + 1) % count, --left) ++out[order[i]];
  for (std::size_t i = count; left < 0; --i)  // rounding of the products above: a unit too many at most
    if (std::int32_t& cell = out[order[i - 1]]; cell > 0) --cell, ++left;
}

void TableFitter::rake(const AgreedTable& table, const double* margins, double tolerance, double* cells) {
  const std::size_t rows = table.rows, columns = table.columns;
  const double *row_margin = margins + table.row_margin, *column_margin = margins + table.column_margin;
  const double total = sum_of(row_margin, rows), sum = sum_of(cells, rows * columns);
  if (!(total > 0.0)) {
    std::fill_n(cells, rows * columns, 0.0);
    return;
  }
  const double scale = sum > 0.0 ? total / sum : 0.0, floor = (sum > 0.0 ? kNothing : 1.0) / total;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      cells[i * columns + j] = scale * cells[i * columns + j] + floor * row_margin[i] * column_margin[j];
  column_sums_.resize(columns);
  for (int step = 0; step < kMostSteps; ++step) {
    std::fill(column_sums_.begin(), column_sums_.end(), 0.0);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) column_sums_[j] += cells[i * columns + j];
    double off = 0.0;
    for (std::size_t j = 0; j < columns; ++j) {
      off = std::max(off, std::abs(column_sums_[j] - column_margin[j]));
      column_sums_[j] = column_sums_[j] > 0.0 ? column_margin[j] / column_sums_[j] : 0.0;  // from here on: the factor
    }
    if (step > 0 && off <= tolerance) return;
    for (std::size_t i = 0; i < rows; ++i) {
      double* row = cells + i * columns;
      double now = 0.0;
      for (std::size_t j = 0; j < columns; ++j) now += row[j] *= column_sums_[j];
      const double factor = now > 0.0 ? row_margin[i] / now : 0.0;
      for (std::size_t j = 0; j < columns; ++j) row[j] *= factor;
    }
  }
}

// Raking leaves row sums as they should be, and column sums nearly. Columns with too much are scaled down: now no sum
// exceeds its margin, nor does any after rounding down. What is missing in rows and in columns, two times the same
// number of units, goes to the largest remainders first.
void TableFitter::round(const AgreedTable& table, const std::int32_t* margins, double* cells, std::int32_t* out) {
  const std::size_t rows = table.rows, columns = table.columns;
  const std::int32_t *row_margin = margins + table.row_margin, *column_margin = margins + table.column_margin;
  whole_margins_.resize(rows + columns);
  std::copy_n(row_margin, rows, whole_margins_.begin());
  std::copy_n(column_margin, columns, whole_margins_.begin() + static_cast<std::ptrdiff_t>(rows));
  rake({table.rows, table.columns, 0, rows}, whole_margins_.data(), kUnitsTolerance, cells);

  column_sums_.assign(columns, 0.0);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) column_sums_[j] += cells[i * columns + j];
  for (std::size_t j = 0; j < columns; ++j)
    column_sums_[j] = column_sums_[j] > column_margin[j] ? column_margin[j] / column_sums_[j] : 1.0;
  row_missing_.assign(row_margin, row_margin + rows);
  column_missing_.assign(column_margin, column_margin + columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      double& cell = cells[i * columns + j];
      cell *= column_sums_[j];
      const auto whole = static_cast<std::int32_t>(cell);
      out[i * columns + j] = whole;
      row_missing_[i] -= whole;
      column_missing_[j] -= whole;
    }
  place_remainders(table, cells, out);
}

void TableFitter::place_remainders(const AgreedTable& table, const double* cells, std::int32_t* out) {
  const std::size_t rows = table.rows, columns = table.columns;
  std::int64_t missing = std::accumulate(row_missing_.begin(), row_missing_.end(), std::int64_t{0});
  const auto place = [&](std::size_t i, std::size_t j, std::int64_t units) {
    out[i * columns + j] += static_cast<std::int32_t>(units);
    row_missing_[i] -= units;
    column_missing_[j] -= units;
    missing -= units;
  };
  if (missing == 0) return;
  const auto remainder = [&](std::uint32_t c) { return cells[c] - std::floor(cells[c]); };
  order_.clear();
  for (std::uint32_t c = 0; c < rows * columns; ++c)
    if (row_missing_[c / columns] > 0 && column_missing_[c % columns] > 0) order_.push_back(c);
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const double first = remainder(a), second = remainder(b);
    return first != second ? first > second : a < b;
  });
  for (auto c : order_)
    if (row_missing_[c / columns] > 0 && column_missing_[c % columns] > 0) place(c / columns, c % columns, 1);
  if (missing == 0) return;
  // Few units, unless raking did not get there: in proportion to what both margins miss, then wherever both miss some.
  const double all = static_cast<double>(missing);
  const auto rows_before = row_missing_, columns_before = column_missing_;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      const double share = static_cast<double>(rows_before[i]) * static_cast<double>(columns_before[j]) / all;
      place(i, j, std::min({static_cast<std::int64_t>(share), row_missing_[i], column_missing_[j]}));
    }
  for (std::size_t i = 0, j = 0; missing > 0;) {
    place(i, j, std::min(row_missing_[i], column_missing_[j]));
    if (row_missing_[i] == 0)
      ++i;
    else
      ++j;
  }
}

}  // namespace fedsel
