// How interesting a subgroup is: quality functions of its tally, and bounds on what its refinements can reach.
#pragma once

#include <cstdint>
#include <string_view>

namespace fedsel {

// Rows a description covers, and the sum of their outcomes (whole numbers, at least 0), apart for the rows whose
// outcome is above the mean of all rows ("high") and for the others.
struct Tally {
  std::int64_t high_rows = 0, low_rows = 0;
  std::int64_t high_sum = 0, low_sum = 0;

  std::int64_t rows() const { return high_rows + low_rows; }
  std::int64_t sum() const { return high_sum + low_sum; }
};

// The outcome over all rows. A yes/no outcome is 0 or 1; a number is a whole number of `unit`s above the least one.
struct Outcome {
  Tally total;
  std::int64_t largest = 1;   // of all outcomes
  std::int64_t low_top = 0;   // largest outcome of the low rows
  std::int64_t high_end = 1;  // least outcome of the high rows
  double unit = 1.0;

  double rows() const { return static_cast<double>(total.rows()); }
  double mean() const { return static_cast<double>(total.sum()) / rows(); }
};

// The same outcomes upside down: largest - outcome.
Tally mirrored(const Tally& tally, std::int64_t largest);
Outcome mirrored(const Outcome& outcome);

// Quality functions: value(outcome, rows, sum) of a subgroup, higher for higher outcomes; bound(...) is at least the
// value of any subset of the subgroup's rows with at least `least` rows. All of them need 0 < rows.

// (n / N)^a (mean of the subgroup - mean of all), 0 <= a <= 1: weighted relative accuracy for a = 1, order-equivalent
// to the binomial test for a = 1/2, the gain in the mean for a = 0.
struct Standard {
  double exponent;
  double value(const Outcome& outcome, double rows, double sum) const;
  double bound(const Outcome& outcome, const Tally& tally, double least) const;
};

// n (mean of the subgroup - mean of all).
struct PiatetskyShapiro {
  double value(const Outcome& outcome, double rows, double sum) const;
  double bound(const Outcome& outcome, const Tally& tally, double least) const;
};

// Share of positives over that of all rows; yes/no outcomes only.
struct Lift {
  double value(const Outcome& outcome, double rows, double sum) const;
  double bound(const Outcome& outcome, const Tally& tally, double least) const;
};

// Pearson's statistic of the two-by-two table, negative where the subgroup has fewer positives than expected; yes/no
// outcomes only.
struct ChiSquared {
  double value(const Outcome& outcome, double rows, double sum) const;
  double bound(const Outcome& outcome, const Tally& tally, double least) const;
};

enum class Measure { standard, piatetsky_shapiro, lift, chi_squared };
enum class Direction { higher, lower, both };

Measure measure_from(std::string_view name);
Direction direction_from(std::string_view name);

// Which rows a subgroup must have to be reported.
struct Support {
  std::int64_t least = 1;
  std::int64_t most = INT64_MAX;
};

// A quality function in a direction: "lower" is "higher" of the mirrored outcome, "both" the larger of the two.
class Quality {
 public:
  Quality(Measure measure, double exponent, Direction direction, const Outcome& outcome, const Support& support);

  const Support& support() const { return support_; }
  bool reportable(const Tally& tally) const { return tally.rows() >= support_.least && tally.rows() <= support_.most; }

  // Of a tally with at least one row.
  double value(const Tally& tally) const;

  // No refinement with enough rows has a higher value; a little more than the exact bound, against rounding.
  double bound(const Tally& tally) const;

 private:
  double value_higher(const Outcome& outcome, const Tally& tally) const;
  double bound_higher(const Outcome& outcome, const Tally& tally) const;

  Measure measure_;
  double exponent_;
  Direction direction_;
  Support support_;
  Outcome outcome_, mirror_;
};

}  // namespace fedsel
