#include "subgroup_bits.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>

#include "parallel.hpp"

namespace fedsel {
namespace {

constexpr std::size_t kLineWords = 8;    // of a cache line, and of the widest vector
constexpr std::size_t kChunkWords = 32;  // words built at a time: the codes of 2048 rows stay in the L1 cache
constexpr std::uint32_t kPadding = std::numeric_limits<std::uint32_t>::max();  // no row

std::size_t words_for(std::size_t rows) { return (rows + 64 * kLineWords - 1) / (64 * kLineWords) * kLineWords; }

template <class Code>
Code code_at(const CodeColumn& column, std::uint32_t row) {
  Code code;
  std::memcpy(&code, static_cast<const char*>(column.data) + static_cast<std::ptrdiff_t>(row) * column.stride,
              sizeof code);
  return code;
}

template <class Code, class Wide>
void gather(const CodeColumn& column, const std::uint32_t* order, std::size_t count, Wide padding, Wide* codes) {
  for (std::size_t i = 0; i < count; ++i)
    codes[i] = order[i] == kPadding ? padding : static_cast<Wide>(code_at<Code>(column, order[i]));
}

// The numbers of the conditions on each variable.
std::vector<std::vector<std::size_t>> by_variable(const std::vector<Condition>& conditions, std::size_t variables) {
  std::vector<std::vector<std::size_t>> result(variables);
  for (std::size_t c = 0; c < conditions.size(); ++c) {
    if (conditions[c].variable >= variables)
      throw std::invalid_argument("condition " + std::to_string(c) + " names variable " +
                                  std::to_string(conditions[c].variable) + " of " + std::to_string(variables));
    for (const auto& [first, last] : conditions[c].ranges)
      if (first > last || last > INT32_MAX)
        throw std::invalid_argument("condition " + std::to_string(c) + " has a range that is empty or too high");
    result[conditions[c].variable].push_back(c);
  }
  return result;
}

}  // namespace

BitTable::BitTable(const std::vector<CodeColumn>& columns, const std::vector<Condition>& conditions,
                   const std::vector<std::int64_t>& outcomes, double unit, std::size_t threads, Level level)
    : conditions_(conditions.size()), kernels_(&bit_kernels(level)) {
  const std::size_t rows = outcomes.size();
  if (rows == 0 || rows >= kPadding) throw std::invalid_argument("there must be between 1 and 2^32 - 2 rows");
  const auto [least, largest] = std::minmax_element(outcomes.begin(), outcomes.end());
  if (*least < 0 || *largest > (std::int64_t{1} << 61) / static_cast<std::int64_t>(rows))
    throw std::invalid_argument("outcomes must be at least 0 and their sum below 2^61");
  if (*least == *largest) throw std::invalid_argument("the outcome must differ between rows");
  std::int64_t sum = 0;
  for (const std::int64_t outcome : outcomes) sum += outcome;

  // outcome > sum / rows, in whole numbers
  const std::int64_t mean_floor = sum / static_cast<std::int64_t>(rows);
  std::size_t high = 0;
  for (const std::int64_t outcome : outcomes) high += outcome > mean_floor;
  high_words_ = words_for(high);
  words_ = high_words_ + words_for(rows - high);
  outcome_.unit = unit;
  outcome_.largest = *largest;
  outcome_.high_end = *largest;
  std::vector<std::uint32_t> order(64 * words_, kPadding);
  std::size_t next_high = 0, next_low = 64 * high_words_;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int64_t outcome = outcomes[row];
    if (outcome > mean_floor) {
      order[next_high++] = static_cast<std::uint32_t>(row);
      outcome_.total.high_sum += outcome;
      outcome_.high_end = std::min(outcome_.high_end, outcome);
    } else {
      order[next_low++] = static_cast<std::uint32_t>(row);
      outcome_.total.low_sum += outcome;
      outcome_.low_top = std::max(outcome_.low_top, outcome);
    }
  }
  outcome_.total.high_rows = static_cast<std::int64_t>(high);
  outcome_.total.low_rows = static_cast<std::int64_t>(rows - high);
  digits_ = *largest == 1 ? 0 : static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(*largest)));
  bits_.assign((conditions_ + digits_) * words_, 0);
  fill_conditions(columns, conditions, order, threads);
  fill_digits(outcomes, order);
}

void BitTable::fill_conditions(const std::vector<CodeColumn>& columns, const std::vector<Condition>& conditions,
                               const std::vector<std::uint32_t>& order, std::size_t threads) {
  const auto groups = by_variable(conditions, columns.size());
  parallel_for(columns.size(), threads, [&](std::size_t variable, std::size_t) {
    const CodeColumn& column = columns[variable];
    const auto& numbers = groups[variable];
    if (numbers.empty()) return;
    std::vector<std::uint8_t> narrow(64 * kChunkWords);
    std::vector<std::uint32_t> wide(64 * kChunkWords);
    for (std::size_t word = 0; word < words_; word += kChunkWords) {
      const std::size_t count = std::min(kChunkWords, words_ - word);
      const std::uint32_t* rows = order.data() + 64 * word;
      // Padding rows get some code; their bits are cleared below.
      if (column.type == CodeType::u8)
        gather<std::uint8_t, std::uint8_t>(column, rows, 64 * count, 255, narrow.data());
      else if (column.type == CodeType::u16)
        gather<std::uint16_t, std::uint32_t>(column, rows, 64 * count, kPadding, wide.data());
      else
        gather<std::int32_t, std::uint32_t>(column, rows, 64 * count, kPadding, wide.data());
      for (const std::size_t number : numbers) {
        std::uint64_t* bits = bits_.data() + number * words_ + word;
        for (const auto& [first, last] : conditions[number].ranges) {
          if (column.type != CodeType::u8)
            kernels_->range_wide(wide.data(), first, last - first, count, bits);
          else if (first <= 255)
            kernels_->range_narrow(narrow.data(), static_cast<std::uint8_t>(first),
                                   static_cast<std::uint8_t>(std::min<std::uint32_t>(last, 255) - first), count, bits);
        }
      }
    }
  });
  const std::size_t high = static_cast<std::size_t>(outcome_.total.high_rows);
  const std::size_t low = static_cast<std::size_t>(outcome_.total.low_rows);
  for (std::size_t c = 0; c < conditions_; ++c)
    for (const auto& [start, used, end] :
         {std::tuple{std::size_t{0}, high, high_words_}, std::tuple{high_words_, low, words_}}) {
      std::uint64_t* bits = bits_.data() + c * words_;
      std::size_t word = start + used / 64;
      if (used % 64 != 0) bits[word++] &= (std::uint64_t{1} << used % 64) - 1;
      std::fill(bits + word, bits + end, 0);
    }
}

void BitTable::fill_digits(const std::vector<std::int64_t>& outcomes, const std::vector<std::uint32_t>& order) {
  for (std::size_t d = 0; d < digits_; ++d) {
    std::uint64_t* bits = bits_.data() + (conditions_ + d) * words_;
    for (std::size_t i = 0; i < order.size(); ++i)
      if (order[i] != kPadding) bits[i / 64] |= (static_cast<std::uint64_t>(outcomes[order[i]]) >> d & 1) << i % 64;
  }
}

void BitTable::cover(const Description& description, std::uint64_t* bits) const {
  std::fill(bits, bits + words_, ~std::uint64_t{0});
  for (const std::uint32_t number : description) {
    const std::uint64_t* other = condition(number);
    for (std::size_t w = 0; w < words_; ++w) bits[w] &= other[w];
  }
}

}  // namespace fedsel
