#include "layout.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>

namespace fedsel {
namespace {

std::size_t size_of(const TableSpec& spec) { return static_cast<std::size_t>(spec.rows) * spec.columns; }

bool named(const std::vector<TableSpec>& specs) {
  return std::none_of(specs.begin(), specs.end(), [](const TableSpec& spec) {
    return spec.row_variable == kUnnamed || spec.column_variable == kUnnamed;
  });
}

using OneWay = std::vector<std::int64_t>;

void add_up(const std::int32_t* cells, const TableSpec& spec, OneWay& rows, OneWay& columns) {
  rows.assign(spec.rows, 0);
  columns.assign(spec.columns, 0);
  for (std::size_t i = 0; i < spec.rows; ++i)
    for (std::size_t j = 0; j < spec.columns; ++j) {
      rows[i] += cells[i * spec.columns + j];
      columns[j] += cells[i * spec.columns + j];
    }
}

}  // namespace

Layout Layout::separate(const std::vector<TableSpec>& specs) {
  Layout layout;
  for (const auto& spec : specs) {
    layout.tables_.push_back({spec.rows, spec.columns, layout.cells_});
    layout.cells_ += padded(size_of(spec));
  }
  return layout;
}

Layout Layout::consistent(const std::vector<TableSpec>& specs) {
  Layout layout;
  layout.tables_.resize(specs.size());
  for (const auto& spec : specs) layout.component_.push_back(spec.component);
  std::size_t end = kLanes;  // the first block holds the total
  const auto close_segment = [&](std::size_t begin, const Components& multiples) {
    if (end == begin) return;
    end = padded(end);
    layout.segments_.push_back({begin, end});
    layout.multiples_.push_back(multiples);
  };

  for (std::uint32_t component = 0; component < kComponents; ++component) {
    const std::size_t begin = end;
    for (std::size_t t = 0; t < specs.size(); ++t) {
      if (specs[t].component != component) continue;
      layout.tables_[t] = {specs[t].rows, specs[t].columns, end};
      end += size_of(specs[t]);
    }
    Components multiples{};
    multiples[component] = 1.0;
    close_segment(begin, multiples);
  }

  std::map<std::uint32_t, Margin> variables;
  for (std::size_t t = 0; t < specs.size(); ++t)
    for (const bool of_rows : {true, false}) {
      const std::uint32_t variable = of_rows ? specs[t].row_variable : specs[t].column_variable;
      const std::size_t size = of_rows ? specs[t].rows : specs[t].columns;
      Margin& margin = variables.try_emplace(variable, Margin{t, of_rows, 0, size, {}}).first->second;
      if (margin.size != size)
        throw std::invalid_argument("variable " + std::to_string(variable) + " has " + std::to_string(margin.size) +
                                    " categories in one table and " + std::to_string(size) + " in another");
      margin.multiples[specs[t].component] -= 1.0;
    }
  std::map<Components, std::vector<Margin>> groups;
  for (const auto& [variable, margin] : variables) groups[margin.multiples].push_back(margin);
  for (const auto& [multiples, margins] : groups) {
    const std::size_t begin = end;
    for (Margin margin : margins) {
      margin.offset = end;
      end += margin.size;
      layout.margins_.push_back(margin);
    }
    close_segment(begin, multiples);
  }
  layout.cells_ = end;
  return layout;
}

Layout Layout::separated() const {
  std::vector<TableSpec> specs;
  for (const auto& table : tables_) specs.push_back({table.rows, table.columns, 0});
  return separate(specs);
}

double Layout::screening_error(const Components& weights) const {
  double error = 0.0, total = 0.0, largest = 0.0;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const double weight = weights[component_[t]];
    error += std::abs(weight) * segment_screening_error(static_cast<double>(tables_[t].rows) * tables_[t].columns);
    largest += std::abs(weight) * std::log2(std::min(tables_[t].rows, tables_[t].columns));
    total += weight;
  }
  for (const auto& margin : margins_) {
    double weight = 0.0;
    for (std::size_t c = 0; c < kComponents; ++c) weight += weights[c] * margin.multiples[c];
    error += std::abs(weight) * segment_screening_error(static_cast<double>(margin.size));
  }
  error += std::abs(total) * segment_screening_error(1.0);
  return 1.1 * (error + 0x1p-24 * largest);  // the loss, at most `largest`, is rounded to single precision
}

void Layout::write(const std::int32_t* counts, std::int32_t* row) const {
  for (const auto& table : tables_) {
    const std::size_t size = static_cast<std::size_t>(table.rows) * table.columns;
    std::copy_n(counts, size, row + table.offset);
    counts += size;
  }
  for (const auto& margin : margins_) {
    const PairTable& table = tables_[margin.table];
    for (std::size_t i = 0; i < table.rows; ++i)
      for (std::size_t j = 0; j < table.columns; ++j)
        row[margin.offset + (margin.of_rows ? i : j)] += row[table.offset + i * table.columns + j];
  }
  if (consistent()) {
    const PairTable& table = tables_[0];
    for (std::size_t c = 0; c < static_cast<std::size_t>(table.rows) * table.columns; ++c)
      row[0] += row[table.offset + c];
  }
}

bool tables_agree(const std::vector<TableSpec>& specs, const std::int32_t* counts, std::size_t clients) {
  if (!named(specs)) return false;
  std::size_t cells = 0;
  for (const auto& spec : specs) cells += size_of(spec);
  OneWay rows, columns;
  for (std::size_t client = 0; client < clients; ++client, counts += cells) {
    if (std::any_of(counts, counts + cells, [](std::int32_t count) { return count < 0; })) return false;
    std::map<std::uint32_t, OneWay> known;
    std::int64_t total = -1;
    const std::int32_t* table = counts;
    for (const auto& spec : specs) {
      add_up(table, spec, rows, columns);
      table += size_of(spec);
      std::int64_t sum = 0;
      for (auto count : rows) sum += count;
      if (total < 0) total = sum;
      if (sum != total) return false;
      if (known.try_emplace(spec.row_variable, rows).first->second != rows) return false;
      if (known.try_emplace(spec.column_variable, columns).first->second != columns) return false;
    }
  }
  return true;
}

}  // namespace fedsel
