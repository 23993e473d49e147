#include "count.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace fedsel {
namespace {

constexpr std::size_t kBlock = 2048;          // rows at a time: all their codes and keys stay in the L2 cache
constexpr std::size_t kMaxJointCells = 8192;  // fastest of 1024 ... 32768 on 11 variables: few joints, near the L1
constexpr std::size_t kFlushRows = 1u << 31;  // 32-bit counters are emptied before they could wrap

// Copies a block of codes into `out` and returns the largest. A negative int32 reads as a large unsigned number, so one
// comparison of the result with the domain checks both ends.
template <class Code, class Key>
std::uint32_t fetch_as(const CodeColumn& column, std::size_t first, std::size_t count, Key* out) {
  const char* p = static_cast<const char*>(column.data) + static_cast<std::ptrdiff_t>(first) * column.stride;
  std::make_unsigned_t<Code> largest = 0;
  const auto copy = [&](std::ptrdiff_t stride) {
    for (std::size_t i = 0; i < count; ++i) {
      std::make_unsigned_t<Code> code;
      std::memcpy(&code, p + static_cast<std::ptrdiff_t>(i) * stride, sizeof code);
      largest = std::max(largest, code);
      out[i] = static_cast<Key>(code);
    }
  };
  if (column.stride == static_cast<std::ptrdiff_t>(sizeof(Code)))
    copy(sizeof(Code));  // a constant the compiler can vectorise for
  else
    copy(column.stride);
  return largest;
}

template <class Key>
std::uint32_t fetch(const CodeColumn& column, std::size_t first, std::size_t count, Key* out) {
  switch (column.type) {
    case CodeType::u8:
      return fetch_as<std::uint8_t>(column, first, count, out);
    case CodeType::u16:
      return fetch_as<std::uint16_t>(column, first, count, out);
    case CodeType::i32:
      return fetch_as<std::int32_t>(column, first, count, out);
  }
  return 0;
}

[[noreturn]] void refuse_code(const CodeColumn& column, std::size_t first, std::size_t count, std::uint32_t domain,
                              std::size_t variable) {
  std::vector<std::uint32_t> codes(count);
  fetch(column, first, count, codes.data());
  std::size_t row = 0;
  while (codes[row] < domain) ++row;
  throw std::invalid_argument(
      "codes of variable " + std::to_string(variable) + " must be between 0 and " + std::to_string(domain - 1) +
      ", got " + std::to_string(static_cast<std::int32_t>(codes[row])) + " in row " + std::to_string(first + row));
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

// keys[r] = sum of code times stride over the V variables; the first column's stride is 1. V is a constant so that the
// sum stays in registers.
template <std::size_t V, class Key>
void fuse(const Key* const* columns, const Key* strides, std::size_t count, Key* keys) {
  for (std::size_t r = 0; r < count; ++r) {
    Key key = columns[0][r];
    for (std::size_t i = 1; i < V; ++i) key = static_cast<Key>(key + columns[i][r] * strides[i]);
    keys[r] = key;
  }
}

// Cell numbers of a block of rows in a joint table. More than kFused variables are added one by one.
template <class Key>
void make_keys(const Key* codes, const VariableSet& variables, const std::vector<std::uint32_t>& strides,
               std::size_t count, Key* keys) {
  constexpr std::size_t kFused = 6;
  const std::size_t size = variables.size(), fused = std::min(size, kFused);
  const Key* columns[kFused];
  Key steps[kFused];
  for (std::size_t i = 0; i < fused; ++i) {
    columns[i] = codes + variables[size - 1 - i] * kBlock;
    steps[i] = static_cast<Key>(strides[size - 1 - i]);
  }
  switch (fused) {
    case 1:
      fuse<1>(columns, steps, count, keys);
      break;
    case 2:
      fuse<2>(columns, steps, count, keys);
      break;
    case 3:
      fuse<3>(columns, steps, count, keys);
      break;
    case 4:
      fuse<4>(columns, steps, count, keys);
      break;
    case 5:
      fuse<5>(columns, steps, count, keys);
      break;
    default:
      fuse<6>(columns, steps, count, keys);
      break;
  }
  for (std::size_t i = fused; i < size; ++i) {
    const Key* column = codes + variables[size - 1 - i] * kBlock;
    const Key step = static_cast<Key>(strides[size - 1 - i]);
    for (std::size_t r = 0; r < count; ++r) keys[r] = static_cast<Key>(keys[r] + column[r] * step);
  }
}

// Counts all rows into the joints' histograms; Key must hold every code and every cell number.
template <class Key>
void count_rows(const std::vector<CodeColumn>& columns, std::size_t rows, const std::vector<std::uint32_t>& domain,
                const std::vector<JointTable>& joints, std::vector<Histogram>& histograms) {
  std::vector<Key> codes(columns.size() * kBlock);
  std::array<Key, kBlock> keys;
  std::size_t unflushed = 0;
  for (std::size_t first = 0; first < rows; first += kBlock) {
    const std::size_t count = std::min(kBlock, rows - first);
    for (std::size_t v = 0; v < columns.size(); ++v)
      if (fetch(columns[v], first, count, codes.data() + v * kBlock) >= domain[v])
        refuse_code(columns[v], first, count, domain[v], v);
    for (std::size_t j = 0; j < joints.size(); ++j) {
      Histogram& histogram = histograms[j];
      const auto& variables = joints[j].variables;
      make_keys(codes.data(), variables, histogram.strides, count, keys.data());
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
}

}  // namespace

void count_marginals(const std::vector<CodeColumn>& columns, std::size_t rows, const std::vector<std::uint32_t>& domain,
                     const std::vector<VariableSet>& requests, std::int64_t* out) {
  // Summing a joint out costs about as much as counting a quarter as many rows: with few rows, keep joints small.
  const std::size_t limit = std::clamp<std::size_t>(rows / 4, 1, kMaxJointCells);
  const auto joints = cover(domain, requests, limit);
  std::vector<Histogram> histograms;
  std::size_t largest = *std::max_element(domain.begin(), domain.end());
  for (const auto& joint : joints) {
    histograms.emplace_back(joint.variables, domain);
    largest = std::max(largest, histograms.back().cells);
  }
  if (largest <= 1u << 16)
    count_rows<std::uint16_t>(columns, rows, domain, joints, histograms);
  else
    count_rows<std::uint32_t>(columns, rows, domain, joints, histograms);

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
