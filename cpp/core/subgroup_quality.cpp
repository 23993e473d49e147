#include "subgroup_quality.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace fedsel {
namespace {

double power(double x, double exponent) {
  if (exponent == 1.0) return x;
  if (exponent == 0.5) return std::sqrt(x);
  if (exponent == 0.0) return 1.0;
  return std::pow(x, exponent);
}

// Most that at least `rows` of the tally's rows can lie above the mean, in sum, and the number of rows that reaches it
// per power of the size: the rows furthest above the mean lie at most `reach` above it each, all high rows together
// `excess`; whoever needs more than the high rows must take low ones, which lie at or below the mean.
struct Excess {
  double rows, sum;
};

Excess largest_excess(const Outcome& outcome, const Tally& tally, double least) {
  const double mean = outcome.mean();
  const double high = static_cast<double>(tally.high_rows);
  const double excess = static_cast<double>(tally.high_sum) - high * mean;
  const double reach = static_cast<double>(outcome.largest) - mean;
  const double rows = std::max(excess / reach, least);
  double sum = std::min(rows * reach, excess);
  if (rows > high) sum += (rows - high) * (static_cast<double>(outcome.low_top) - mean);
  return {rows, std::max(sum, 0.0)};
}

}  // namespace

Tally mirrored(const Tally& tally, std::int64_t largest) {
  return {tally.low_rows, tally.high_rows, tally.low_rows * largest - tally.low_sum,
          tally.high_rows * largest - tally.high_sum};
}

Outcome mirrored(const Outcome& outcome) {
  Outcome result = outcome;
  result.total = mirrored(outcome.total, outcome.largest);
  result.low_top = outcome.largest - outcome.high_end;
  result.high_end = outcome.largest - outcome.low_top;
  return result;
}

double Standard::value(const Outcome& outcome, double rows, double sum) const {
  return power(rows / outcome.rows(), exponent) * (sum / rows - outcome.mean()) * outcome.unit;
}

// A subset of t rows has the value N^-a t^(a-1) (its excess over the mean). The excess is at most min(t reach, excess
// of all high rows), so for a <= 1 the value grows up to the t where the two meet and falls from there.
double Standard::bound(const Outcome& outcome, const Tally& tally, double least) const {
  const Excess best = largest_excess(outcome, tally, least);
  if (best.sum <= 0.0) return 0.0;
  return power(best.rows / outcome.rows(), exponent) * (best.sum / best.rows) * outcome.unit;
}

double PiatetskyShapiro::value(const Outcome& outcome, double rows, double sum) const {
  return rows * (sum / rows - outcome.mean()) * outcome.unit;
}

double PiatetskyShapiro::bound(const Outcome& outcome, const Tally& tally, double least) const {
  return largest_excess(outcome, tally, least).sum * outcome.unit;
}

double Lift::value(const Outcome& outcome, double rows, double sum) const { return sum / rows / outcome.mean(); }

double Lift::bound(const Outcome& outcome, const Tally& tally, double least) const {
  const double high = static_cast<double>(tally.high_rows);
  return std::min(1.0, high / least) / outcome.mean();
}

double ChiSquared::value(const Outcome& outcome, double rows, double sum) const {
  const double all = outcome.rows(), positives = static_cast<double>(outcome.total.sum());
  if (rows >= all) return 0.0;
  const double difference = sum * all - rows * positives;
  const double statistic = difference / (rows * (all - rows)) * (difference / (positives * (all - positives))) * all;
  return difference < 0.0 ? -statistic : statistic;
}

// The statistic is convex in (positives, negatives), so over the subsets with more positives than expected it is
// largest at a corner: all positives and no negatives, or everything (Morishita and Sese 2000).
double ChiSquared::bound(const Outcome& outcome, const Tally& tally, double) const {
  const double positives = static_cast<double>(tally.sum());
  const double pure = positives > 0.0 ? value(outcome, positives, positives) : 0.0;
  return std::max({0.0, pure, value(outcome, static_cast<double>(tally.rows()), positives)});
}

Measure measure_from(std::string_view name) {
  if (name == "standard") return Measure::standard;
  if (name == "piatetsky-shapiro") return Measure::piatetsky_shapiro;
  if (name == "lift") return Measure::lift;
  if (name == "chi2") return Measure::chi_squared;
  throw std::invalid_argument("measure must be standard, piatetsky-shapiro, lift or chi2, got " + std::string(name));
}

Direction direction_from(std::string_view name) {
  if (name == "higher") return Direction::higher;
  if (name == "lower") return Direction::lower;
  if (name == "both") return Direction::both;
  throw std::invalid_argument("direction must be higher, lower or both, got " + std::string(name));
}

Quality::Quality(Measure measure, double exponent, Direction direction, const Outcome& outcome, const Support& support)
    : measure_(measure),
      exponent_(exponent),
      direction_(direction),
      support_(support),
      outcome_(outcome),
      mirror_(mirrored(outcome)) {
  if (!(exponent >= 0.0 && exponent <= 1.0)) throw std::invalid_argument("exponent must be between 0 and 1");
  if (support.least < 1) throw std::invalid_argument("least rows must be at least 1");
  if (outcome.total.high_rows == 0 || outcome.total.low_rows == 0)
    throw std::invalid_argument("the outcome must differ between rows");
  if ((measure == Measure::lift || measure == Measure::chi_squared) && (outcome.largest != 1 || outcome.unit != 1.0))
    throw std::invalid_argument("lift and chi2 need a yes/no outcome");
}

double Quality::value_higher(const Outcome& outcome, const Tally& tally) const {
  const double rows = static_cast<double>(tally.rows()), sum = static_cast<double>(tally.sum());
  switch (measure_) {
    case Measure::standard:
      return Standard{exponent_}.value(outcome, rows, sum);
    case Measure::piatetsky_shapiro:
      return PiatetskyShapiro{}.value(outcome, rows, sum);
    case Measure::lift:
      return Lift{}.value(outcome, rows, sum);
    case Measure::chi_squared:
      return ChiSquared{}.value(outcome, rows, sum);
  }
  return 0.0;
}

double Quality::bound_higher(const Outcome& outcome, const Tally& tally) const {
  const double least = static_cast<double>(support_.least);
  switch (measure_) {
    case Measure::standard:
      return Standard{exponent_}.bound(outcome, tally, least);
    case Measure::piatetsky_shapiro:
      return PiatetskyShapiro{}.bound(outcome, tally, least);
    case Measure::lift:
      return Lift{}.bound(outcome, tally, least);
    case Measure::chi_squared:
      return ChiSquared{}.bound(outcome, tally, least);
  }
  return 0.0;
}

double Quality::value(const Tally& tally) const {
  switch (direction_) {
    case Direction::higher:
      return value_higher(outcome_, tally);
    case Direction::lower:
      return value_higher(mirror_, mirrored(tally, outcome_.largest));
    case Direction::both:
      return std::max(value_higher(outcome_, tally), value_higher(mirror_, mirrored(tally, outcome_.largest)));
  }
  return 0.0;
}

double Quality::bound(const Tally& tally) const {
  const Tally mirror = mirrored(tally, outcome_.largest);
  double bound = 0.0;
  if (direction_ != Direction::lower) bound = bound_higher(outcome_, tally);
  if (direction_ != Direction::higher) bound = std::max(bound, bound_higher(mirror_, mirror));
  return bound + 1e-12 * bound;
}

}  // namespace fedsel
