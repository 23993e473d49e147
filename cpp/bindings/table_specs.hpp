// Tables as Python describes them: (rows, columns, component, row variable, column variable).
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "layout.hpp"

namespace fedsel_bindings {

using TableTuples = std::vector<std::array<std::uint32_t, 5>>;

constexpr std::size_t kMaxCells = std::size_t{1} << 40;

struct Specs {
  std::vector<fedsel::TableSpec> tables;
  std::size_t cells = 0;  // of a client
};

inline Specs specs_of(const TableTuples& tuples) {
  Specs specs;
  for (const auto& [rows, columns, component, row_variable, column_variable] : tuples) {
    specs.tables.push_back({rows, columns, component, row_variable, column_variable});
    specs.cells += static_cast<std::size_t>(rows) * columns;
    if (specs.cells > kMaxCells) throw std::invalid_argument("tables must hold at most 2^40 cells together");
  }
  return specs;
}

}  // namespace fedsel_bindings
