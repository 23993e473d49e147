#include <algorithm>
#include <stdexcept>

#include "parallel.hpp"
#include "subgroup_search.hpp"

namespace fedsel {
namespace {

constexpr std::size_t kMostColumns = 3;         // of a table, the outcome apart
constexpr std::size_t kCellsAtOnce = 1u << 20;  // counted in one pass over the rows; bounds the memory
constexpr std::size_t kRowsAThread = 1u << 15;  // before a second thread pays for its start

// All sets of 1 to `depth` columns, in lexicographic order of their sizes, as batches of at most kCellsAtOnce cells (or
// one set).
std::vector<std::vector<VariableSet>> batches_of(const std::vector<std::uint32_t>& domain, std::size_t depth) {
  const std::uint32_t columns = static_cast<std::uint32_t>(domain.size());
  std::vector<std::vector<VariableSet>> batches(1);
  std::size_t cells = 0;
  const auto add = [&](VariableSet set) {
    std::size_t size = 2;
    for (const std::uint32_t column : set) size *= domain[column];
    if (cells + size > kCellsAtOnce && !batches.back().empty()) {
      batches.emplace_back();
      cells = 0;
    }
    cells += size;
    batches.back().push_back(std::move(set));
  };
  for (std::uint32_t a = 0; a < columns; ++a) add({a});
  if (depth >= 2)
    for (std::uint32_t a = 0; a < columns; ++a)
      for (std::uint32_t b = a + 1; b < columns; ++b) add({a, b});
  if (depth >= 3)
    for (std::uint32_t a = 0; a < columns; ++a)
      for (std::uint32_t b = a + 1; b < columns; ++b)
        for (std::uint32_t c = b + 1; c < columns; ++c) add({a, b, c});
  return batches;
}

// Counts the tables of each set with the outcome, the last variable, threads sharing the rows.
std::vector<std::int64_t> count_by_outcome(const std::vector<CodeColumn>& columns, std::size_t rows,
                                           const std::vector<std::uint32_t>& domain,
                                           const std::vector<VariableSet>& sets, std::size_t threads) {
  std::vector<VariableSet> requests;
  std::size_t cells = 0;
  for (const VariableSet& set : sets) {
    requests.push_back(set);
    requests.back().push_back(static_cast<std::uint32_t>(domain.size() - 1));
    std::size_t size = 2;
    for (const std::uint32_t column : set) size *= domain[column];
    cells += size;
  }
  const std::size_t shares = std::clamp<std::size_t>(rows / kRowsAThread, 1, std::max<std::size_t>(threads, 1));
  std::vector<std::vector<std::int64_t>> counts(shares, std::vector<std::int64_t>(cells));
  parallel_for(shares, threads, [&](std::size_t share, std::size_t) {
    const std::size_t first = rows * share / shares, last = rows * (share + 1) / shares;
    std::vector<CodeColumn> part(columns);
    for (CodeColumn& column : part)
      column.data = static_cast<const char*>(column.data) + static_cast<std::ptrdiff_t>(first) * column.stride;
    count_marginals(part, last - first, domain, requests, counts[share].data());
  });
  for (std::size_t share = 1; share < shares; ++share)
    for (std::size_t c = 0; c < cells; ++c) counts[0][c] += counts[share][c];
  return std::move(counts[0]);
}

class Scorer {
 public:
  Scorer(const std::vector<CategoryColumn>& columns, const Quality& quality, const SubgroupOptions& options)
      : columns_(columns), quality_(quality), best_(options.keep, options.floor) {}

  // Scores all cells of the table of a set; returns where its counts end.
  const std::int64_t* score(const VariableSet& set, const std::int64_t* counts) {
    set_ = &set;
    return walk(0, counts);
  }

  const std::vector<Subgroup>& best() const { return best_.subgroups(); }
  std::uint64_t scored() const { return scored_; }

 private:
  // Cells whose first `fixed` codes are those of description_ (some of no condition unless valid_); the others run.
  const std::int64_t* walk(std::size_t fixed, const std::int64_t* counts) {
    const auto& conditions = columns_[(*set_)[fixed]].conditions;
    if (fixed + 1 == set_->size()) {
      for (const std::int64_t condition : conditions) {
        if (condition >= 0 && valid_) score_cell(counts, static_cast<std::uint32_t>(condition));
        counts += 2;
      }
      return counts;
    }
    for (const std::int64_t condition : conditions) {
      const bool outer = valid_;
      valid_ = outer && condition >= 0;
      description_.push_back(static_cast<std::uint32_t>(condition));
      counts = walk(fixed + 1, counts);
      description_.pop_back();
      valid_ = outer;
    }
    return counts;
  }

  void score_cell(const std::int64_t* counts, std::uint32_t condition) {
    const Tally tally{counts[1], counts[0], counts[1], 0};
    ++scored_;
    if (!quality_.reportable(tally)) return;
    const double value = quality_.value(tally);
    if (value < best_.threshold()) return;
    Description description(description_);
    description.push_back(condition);
    std::sort(description.begin(), description.end());
    best_.offer({value, std::move(description), tally});
  }

  const std::vector<CategoryColumn>& columns_;
  const Quality& quality_;
  SubgroupList best_;
  const VariableSet* set_ = nullptr;
  Description description_;
  bool valid_ = true;
  std::uint64_t scored_ = 0;
};

}  // namespace

std::vector<Subgroup> search_marginals(const std::vector<CategoryColumn>& columns, const std::uint8_t* outcomes,
                                       std::size_t rows, const Quality& quality, const SubgroupOptions& options,
                                       Control& control) {
  if (options.depth < 1 || options.depth > kMostColumns)
    throw std::invalid_argument("marginals reach a depth of 1 to 3");
  std::vector<CodeColumn> codes;
  std::vector<std::uint32_t> domain;
  for (const CategoryColumn& column : columns) {
    codes.push_back(column.codes);
    domain.push_back(static_cast<std::uint32_t>(column.conditions.size()));
  }
  const auto batches = batches_of(domain, std::min(options.depth, columns.size()));
  codes.push_back({outcomes, 1, CodeType::u8});
  domain.push_back(2);
  Scorer scorer(columns, quality, options);
  for (const auto& batch : batches) {
    if (control.stopped()) break;
    const auto counts = count_by_outcome(codes, rows, domain, batch, options.threads);
    const std::int64_t* next = counts.data();
    for (const VariableSet& set : batch) next = scorer.score(set, next);
    control.evaluations.store(scorer.scored(), std::memory_order_relaxed);
  }
  return scorer.best();
}

}  // namespace fedsel
