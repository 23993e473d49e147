#include "count.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>

namespace fedsel {
namespace {

constexpr std::size_t kBlock = 2048;           // rows at a time: all their codes and keys stay in the L2 cache
constexpr std::size_t kMaxJointCells = 4096;   // two interleaved 32-bit histograms of a joint fit the L1 cache
constexpr std::size_t kFlushRows = 1u << 31;   // 32-bit counters are emptied before they could wrap

template <class Code>
void widen(const CodeColumn& column, std::size_t first, std::size_t count, std::uint32_t* out) {
  const char* p = static_cast<const char*>(column.data) + static_cast<std::ptrdiff_t>(first) * column.stride;
  if (column.stride == static_cast<std::ptrdiff_t>(sizeof(Code))) {
    for (std::size_t i = 0; i < count; ++i) {
      Code code;
      std::memcpy(&code, p + i * sizeof(Code), sizeof(Code));
      out[i] = static_cast<std::uint32_t>(code);
    }
  } else {
    for (std::size_t i = 0; i < count; ++i, p += column.stride) {
      Code code;
      std::memcpy(&code, p, sizeof(Code));
      out[i] = static_cast<std::uint32_t>(code);
    }
  }
}

void widen(const CodeColumn& column, std::size_t first, std::size_t count, std::uint32_t* out) {
  switch (column.type) {
    case CodeType::u8: return widen<std::uint8_t>(column, first, count, out);
    case CodeType::u16: return widen<std::uint16_t>(column, first, count, out);
    case CodeType::i32: return widen<std::int32_t>(column, first, count, out);
  }
}

// A negative int32 became a large unsigned number, so one comparison checks both ends.
void check_codes(const std::uint32_t* codes, std::size_t first, std::size_t count, std::uint32_t domain,
                 std::size_t variable) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, codes[i]);
  if (largest < domain) return;
  std::size_t row = 0;
  while (codes[row] < domain) ++row;
  throw std::invalid_argument("codes of variable " + std::to_string(variable) + " must be between 0 and " +
                              std::to_string(domain - 1) + ", got " +
                              std::to_string(static_cast<std::int32_t>(codes[row])) + " in row " +
                              std::to_string(first + row));
}

std::vector<std::int64_t> sum_out(const std::vector<std::int64_t>& cells, std::size_t outer, std::size_t axis,
                                  std::size_t inner) {
  std::vector<std::int64_t> result(outer * inner, 0);
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t a = 0; a < axis; ++a) {
      const std::int64_t* from = cells.data() + (o * axis + a) * inner;
      std::int64_t* to = result.data() + o * inner;
      for (std::size_t i = 0; i < inner; ++i) to[i] += from[i];
    }
  return result;
}

// Two histograms, used by even and odd rows: a row's increment never waits for the store of the row before it.
struct Histogram {
  std::vector<std::uint32_t> strides;
  std::size_t cells = 1;
  std::vector<std::uint32_t> even, odd;
  std::vector<std::int64_t> total;

  Histogram(const VariableSet& variables, const std::vector<std::uint32_t>& domain) : strides(variables.size()) {
    for (std::size_t i = variables.size(); i-- > 0;) {
      strides[i] = static_cast<std::uint32_t>(cells);
      cells *= domain[variables[i]];
    }
    even.assign(cells, 0);
    odd.assign(cells, 0);
    total.assign(cells, 0);
  }

  void flush() {
    for (std::size_t c = 0; c < cells; ++c) total[c] += static_cast<std::int64_t>(even[c]) + odd[c];
    std::fill(even.begin(), even.end(), 0);
    std::fill(odd.begin(), odd.end(), 0);
  }
};

}  // namespace

void count_marginals(const std::vector<CodeColumn>& columns, std::size_t rows,
                     const std::vector<std::uint32_t>& domain, const std::vector<VariableSet>& requests,
                     std::int64_t* out) {
  // Summing a joint out costs about as much as counting a quarter as many rows: with few rows, keep joints small.
  const std::size_t limit = std::clamp<std::size_t>(rows / 4, 1, kMaxJointCells);
  const auto joints = cover(domain, requests, limit);
  std::vector<Histogram> histograms;
  for (const auto& joint : joints) histograms.emplace_back(joint.variables, domain);

  std::vector<std::uint32_t> codes(columns.size() * kBlock);
  std::array<std::uint32_t, kBlock> keys;
  std::size_t unflushed = 0;
  for (std::size_t first = 0; first < rows; first += kBlock) {
    const std::size_t count = std::min(kBlock, rows - first);
    for (std::size_t v = 0; v < columns.size(); ++v) {
      widen(columns[v], first, count, codes.data() + v * kBlock);
      check_codes(codes.data() + v * kBlock, first, count, domain[v], v);
    }
    for (std::size_t j = 0; j < joints.size(); ++j) {
      Histogram& histogram = histograms[j];
      const auto& variables = joints[j].variables;
      std::copy_n(codes.data() + variables.back() * kBlock, count, keys.begin());  // the last stride is 1
      for (std::size_t i = 0; i + 1 < variables.size(); ++i) {
        const std::uint32_t* column = codes.data() + variables[i] * kBlock;
        const std::uint32_t stride = histogram.strides[i];
        for (std::size_t r = 0; r < count; ++r) keys[r] += column[r] * stride;
      }
      std::uint32_t *even = histogram.even.data(), *odd = histogram.odd.data();
      std::size_t r = 0;
      for (; r + 1 < count; r += 2) {
        ++even[keys[r]];
        ++odd[keys[r + 1]];
      }
      if (r < count) ++even[keys[r]];
    }
    unflushed += count;
    if (unflushed + kBlock > kFlushRows) {
      for (auto& histogram : histograms) histogram.flush();
      unflushed = 0;
    }
  }

  std::vector<std::int64_t*> target(requests.size());
  for (std::size_t r = 0; r < requests.size(); ++r) {
    target[r] = out;
    std::size_t cells = 1;
    for (auto v : requests[r]) cells *= domain[v];
    out += cells;
  }
  for (std::size_t j = 0; j < joints.size(); ++j) {
    histograms[j].flush();
    for (auto r : joints[j].requests) {
      std::vector<std::int64_t> cells = histograms[j].total;
      std::size_t outer = 1, inner = histograms[j].cells;
      for (auto v : joints[j].variables) {  // the leading kept variables stand in `outer`, the rest in `inner`
        inner /= domain[v];
        if (std::binary_search(requests[r].begin(), requests[r].end(), v))
          outer *= domain[v];
        else
          cells = sum_out(cells, outer, domain[v], inner);
      }
      std::copy(cells.begin(), cells.end(), target[r]);
    }
  }
}

}  // namespace fedsel
