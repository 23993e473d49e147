// Two-way tables of a client that are made to agree: each is fitted to margins that all of them share, and rounded to
// whole numbers without losing a unit of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fedsel {

// A table, and where the margins of its two variables stand in the client's margins.
struct AgreedTable {
  std::uint32_t rows;
  std::uint32_t columns;
  std::size_t row_margin;
  std::size_t column_margin;
};

// Whole numbers in proportion to `shares` (not negative) that add up to `total`: what rounding down leaves goes to the
// largest remainders. All equal where no share is positive.
void largest_remainders(const double* shares, std::size_t count, std::int32_t total, std::int32_t* out);

class TableFitter {
 public:
  // Multiplies rows and columns of a table until its margins are those given, up to `tolerance` (iterative proportional
  // fitting, Deming and Stephan 1940: the closest table in relative entropy). Both margins must have one sum. Cells
  // that are 0 where margins are not count as next to nothing. `cells` must not be negative.
  void rake(const AgreedTable& table, const double* margins, double tolerance, double* cells);

  // Rakes the table to whole margins of one sum, and writes whole cells that have them exactly.
  void round(const AgreedTable& table, const std::int32_t* margins, double* cells, std::int32_t* out);

 private:
  void place_remainders(const AgreedTable& table, const double* cells, std::int32_t* out);

  std::vector<double> column_sums_, whole_margins_;
  std::vector<std::int64_t> row_missing_, column_missing_;
  std::vector<std::uint32_t> order_;
};

}  // namespace fedsel
