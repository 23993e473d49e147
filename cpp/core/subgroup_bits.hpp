// The rows of a data set as bit sets, one a condition, arranged so that counting bits gives tallies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "aligned.hpp"
#include "count.hpp"
#include "subgroup_kernel.hpp"
#include "subgroup_list.hpp"

namespace fedsel {

// Rows whose code of a variable lies in one of the ranges [first, last]; other codes, negative ones too, do not.
struct Condition {
  std::uint32_t variable;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
};

// Rows stand in two regions, first those whose outcome is above the mean, each padded with zeros to whole cache lines:
// counting the bits of a cover by region gives the rows of both kinds at once. Outcomes that are not 0 or 1 have a bit
// set for every binary digit; the sum over a cover is the weighted sum of what it shares with each digit.
class BitTable {
 public:
  // `outcomes`: one a row, at least 0. Throws std::invalid_argument if all are equal or their sum could overflow.
  BitTable(const std::vector<CodeColumn>& columns, const std::vector<Condition>& conditions,
           const std::vector<std::int64_t>& outcomes, double unit, std::size_t threads, Level level);

  const Outcome& outcome() const { return outcome_; }
  std::size_t conditions() const { return conditions_; }
  std::size_t digits() const { return digits_; }
  // Words of a bit set: [0, high_words) is the region of high outcomes, the rest that of the others.
  std::size_t words() const { return words_; }
  std::size_t high_words() const { return high_words_; }
  const std::uint64_t* condition(std::size_t number) const { return bits_.data() + number * words_; }
  const std::uint64_t* digit(std::size_t number) const { return bits_.data() + (conditions_ + number) * words_; }
  const BitKernels& kernels() const { return *kernels_; }

  // Rows of a description as a bit set; with no condition every bit is set, padding included.
  void cover(const Description& description, std::uint64_t* bits) const;

 private:
  void fill_conditions(const std::vector<CodeColumn>& columns, const std::vector<Condition>& conditions,
                       const std::vector<std::uint32_t>& order, std::size_t threads);
  void fill_digits(const std::vector<std::int64_t>& outcomes, const std::vector<std::uint32_t>& order);

  std::size_t conditions_ = 0, digits_ = 0, words_ = 0, high_words_ = 0;
  Outcome outcome_;
  const BitKernels* kernels_;
  AlignedVector<std::uint64_t> bits_;
};

// A few descriptions to be refined by the same conditions.
struct RefinementGroup {
  std::vector<Description> parents;
  std::vector<std::uint32_t> conditions;
};

// How many parents a group should have to be counted fastest.
std::size_t group_size(const BitTable& table);

// For each group, tallies of every parent with every condition added, parent by parent. Threads share the rows out;
// sums of whole numbers do not depend on how.
std::vector<std::vector<Tally>> count_refinements(const BitTable& table, const std::vector<RefinementGroup>& groups,
                                                  std::size_t threads);

}  // namespace fedsel
