// Random pools for the tests, and the loss written the plain way.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "loss_model.hpp"

namespace made {

using namespace fedsel;

struct Pool {
  std::vector<TableSpec> tables;
  std::vector<std::int32_t> counts;  // clients x cells
  std::size_t clients, cells = 0;

  LossModel model(Level level = best_level()) const {
    return LossModel(counts.data(), clients, tables, {2.0, 0.89, 0.11, -1.33}, level);
  }
  // The same pool with variables unnamed: every table is evaluated by itself.
  LossModel separate_model(Level level = best_level()) const {
    auto specs = tables;
    for (auto& spec : specs) spec.row_variable = spec.column_variable = kUnnamed;
    return LossModel(counts.data(), clients, specs, {2.0, 0.89, 0.11, -1.33}, level);
  }
};

// Tables of random shapes (one row, one column and 1 x 1 among them); a third of the cells 0, some negative.
inline Pool pool(unsigned seed, std::size_t clients, std::size_t tables) {
  std::mt19937 random(seed);
  Pool made;
  made.clients = clients;
  for (std::size_t t = 0; t < tables; ++t) {
    const std::uint32_t rows = t == 0 ? 1 : 1 + random() % 12, columns = t <= 1 ? 1 : 1 + random() % 23;
    made.tables.push_back({rows, columns, static_cast<std::uint32_t>(random() % kComponents)});
    made.cells += rows * columns;
  }
  for (std::size_t c = 0; c < clients * made.cells; ++c)
    made.counts.push_back(random() % 3 == 0 ? 0 : static_cast<std::int32_t>(random() % 5000) - 300);
  return made;
}

// Exact tables of made rows: all tables agree. Variables of one to nine categories, the first of one; the first client
// has no rows, the others up to 400.
inline Pool consistent_pool(unsigned seed, std::size_t clients, std::size_t variables) {
  std::mt19937 random(seed);
  Pool made;
  made.clients = clients;
  std::vector<std::uint32_t> domain{1};
  while (domain.size() < variables) domain.push_back(1 + random() % 9);
  for (std::uint32_t i = 0; i < variables; ++i)
    for (std::uint32_t j = i + 1; j < variables; ++j) {
      made.tables.push_back({domain[i], domain[j], static_cast<std::uint32_t>(random() % kComponents), i, j});
      made.cells += domain[i] * domain[j];
    }
  made.counts.assign(clients * made.cells, 0);
  std::vector<std::uint32_t> row(variables);
  for (std::size_t client = 1; client < clients; ++client)
    for (std::size_t n = random() % 400; n > 0; --n) {
      for (std::size_t v = 0; v < variables; ++v)
        row[v] = std::min<std::uint32_t>(random() % domain[v], random() % domain[v]);
      std::int32_t* table = made.counts.data() + client * made.cells;
      for (const auto& spec : made.tables) {
        ++table[row[spec.row_variable] * spec.columns + row[spec.column_variable]];
        table += spec.rows * spec.columns;
      }
    }
  return made;
}

inline double f(double x) { return x > 0 ? x * std::log2(x) : 0.0; }

// Mutual information of summed tables in bits, negative sums counted as 0.
inline double information(const std::vector<std::int64_t>& cells, std::size_t rows, std::size_t columns) {
  std::vector<double> row(rows), column(columns);
  double total = 0.0, sum = 0.0;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      const double x = static_cast<double>(std::max<std::int64_t>(cells[i * columns + j], 0));
      row[i] += x;
      column[j] += x;
      total += x;
      sum += f(x);
    }
  for (double x : row) sum -= f(x);
  for (double x : column) sum -= f(x);
  return total > 0 ? (sum + f(total)) / total : 0.0;
}

inline double loss(const Pool& pool, const std::vector<std::uint32_t>& members) {
  const double weights[] = {2.0, 0.89, 0.11, -1.33};
  double result = 0.0;
  std::size_t offset = 0;
  for (const auto& table : pool.tables) {
    const std::size_t size = static_cast<std::size_t>(table.rows) * table.columns;
    std::vector<std::int64_t> cells(size, 0);
    for (auto client : members)
      for (std::size_t c = 0; c < size; ++c) cells[c] += pool.counts[client * pool.cells + offset + c];
    result += weights[table.component] * information(cells, table.rows, table.columns);
    offset += size;
  }
  return result;
}

}  // namespace made
