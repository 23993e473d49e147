// Contingency tables of a workload from columns of category codes, in one pass over the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cover.hpp"

namespace fedsel {

enum class CodeType { u8, u16, i32 };

// A borrowed column of category codes; `stride` is in bytes and may be negative.
struct CodeColumn {
  const void* data;
  std::ptrdiff_t stride;
  CodeType type;
};

// Counts every requested table into `out`: tables one after another, the last variable of a set fastest.
// Throws std::invalid_argument if a code is outside [0, domain).
void count_marginals(const std::vector<CodeColumn>& columns, std::size_t rows, const std::vector<std::uint32_t>& domain,
                     const std::vector<VariableSet>& requests, std::int64_t* out);

}  // namespace fedsel
