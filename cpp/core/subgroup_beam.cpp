#include <algorithm>
#include <limits>

#include "subgroup_search.hpp"

namespace fedsel {
namespace {

constexpr std::size_t kPoolFactor = 10;  // candidates of a diverse beam, in widths
constexpr std::size_t kBatch = 16;       // groups counted between two looks at the control

constexpr double kAnything = -std::numeric_limits<double>::infinity();

// What a refined description and each condition have in common: nothing where the refinement was ruled out.
struct Row {
  Description parent;
  std::vector<Tally> tallies;
};

std::vector<Subgroup> chosen(const BitTable& table, const std::vector<Subgroup>& pool, const BeamOptions& beam,
                             std::size_t threads, Control& control) {
  if (beam.diversity == Diversity::none) return pool;
  std::vector<Subgroup> result;
  for (const std::size_t position :
       select_diverse(table, pool, beam.width, beam.diversity, beam.alpha, threads, control))
    result.push_back(pool[position]);
  return result;
}

// The rounds of a beam search. A refinement is counted only if its bound allows it to enter the beam or the list, by
// everything counted before that it refines: the single condition, and the parent's shorter forms with the condition.
class Rounds {
 public:
  Rounds(const BitTable& table, const Quality& quality, const SubgroupOptions& options, std::size_t pool_size,
         Control& control)
      : table_(table),
        quality_(quality),
        options_(options),
        control_(control),
        best_(options.keep, options.floor),
        pool_(pool_size, kAnything) {}

  const SubgroupList& best() const { return best_; }
  const SubgroupList& pool() const { return pool_; }

  // Refines all parents. The first group goes ahead: its results raise what the others must reach.
  void run(const std::vector<Description>& parents) {
    const std::vector<Row> earlier = std::move(rows_);
    rows_.clear();
    const std::size_t size = group_size(table_);
    std::size_t next = 0, groups = 1;
    while (next < parents.size() && !control_.stopped()) {
      std::vector<RefinementGroup> batch;
      for (; batch.size() < groups && next < parents.size(); next += size) {
        const std::size_t end = std::min(next + size, parents.size());
        const auto begin = parents.begin();
        batch.push_back({{begin + static_cast<std::ptrdiff_t>(next), begin + static_cast<std::ptrdiff_t>(end)}, {}});
        batch.back().conditions = wanted(batch.back().parents, earlier);
      }
      const auto tallies = count_refinements(table_, batch, options_.threads);
      for (std::size_t g = 0; g < batch.size(); ++g) take(batch[g], tallies[g]);
      groups = kBatch;
    }
    if (parents.size() == 1 && parents[0].empty() && !rows_.empty())
      for (const Tally& tally : rows_[0].tallies) single_bounds_.push_back(bound(tally));
  }

 private:
  double needed() const { return std::min(best_.threshold(), pool_.threshold()); }

  double bound(const Tally& tally) const {
    return tally.rows() < quality_.support().least ? kAnything : quality_.bound(tally);
  }

  std::vector<std::uint32_t> wanted(const std::vector<Description>& parents, const std::vector<Row>& earlier) const {
    std::vector<std::vector<const Row*>> shorter(parents.size());
    for (std::size_t p = 0; p < parents.size(); ++p)
      for (const Row& row : earlier)
        if (!row.parent.empty() &&
            std::includes(parents[p].begin(), parents[p].end(), row.parent.begin(), row.parent.end()))
          shorter[p].push_back(&row);
    std::vector<std::uint32_t> result;
    for (std::uint32_t c = 0; c < table_.conditions(); ++c) {
      if (!single_bounds_.empty() && single_bounds_[c] < needed()) continue;
      for (std::size_t p = 0; p < parents.size(); ++p) {
        if (std::binary_search(parents[p].begin(), parents[p].end(), c)) continue;
        // A condition of the parent stands in no shorter form's way: those hold it already.
        if (std::all_of(shorter[p].begin(), shorter[p].end(),
                        [&](const Row* row) { return bound(row->tallies[c]) >= needed(); })) {
          result.push_back(c);
          break;
        }
      }
    }
    return result;
  }

  void take(const RefinementGroup& group, const std::vector<Tally>& tallies) {
    const std::size_t count = group.conditions.size();
    control_.evaluations.fetch_add(tallies.size(), std::memory_order_relaxed);
    for (std::size_t p = 0; p < group.parents.size(); ++p) {
      rows_.push_back({group.parents[p], std::vector<Tally>(table_.conditions())});
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t condition = group.conditions[i];
        const Tally& tally = tallies[p * count + i];
        rows_.back().tallies[condition] = tally;
        if (!quality_.reportable(tally)) continue;
        const double value = quality_.value(tally);
        if (value < needed()) continue;
        if (std::binary_search(group.parents[p].begin(), group.parents[p].end(), condition)) continue;
        Subgroup found{value, refined(group.parents[p], condition), tally};
        pool_.offer(found);
        best_.offer(std::move(found));
      }
    }
  }

  const BitTable& table_;
  const Quality& quality_;
  const SubgroupOptions& options_;
  Control& control_;
  SubgroupList best_, pool_;
  std::vector<Row> rows_;  // of the last round
  std::vector<double> single_bounds_;
};

}  // namespace

std::vector<Subgroup> search_beam(const BitTable& table, const Quality& quality, const SubgroupOptions& options,
                                  const BeamOptions& beam, Control& control) {
  Rounds rounds(table, quality, options, beam.diversity == Diversity::none ? beam.width : kPoolFactor * beam.width,
                control);
  std::vector<Description> parents{{}};
  for (std::size_t round = 0; round < options.depth && !parents.empty() && !control.stopped(); ++round) {
    rounds.run(parents);
    parents.clear();
    if (round + 1 < options.depth)
      for (const auto& subgroup : chosen(table, rounds.pool().subgroups(), beam, options.threads, control))
        if (subgroup.conditions.size() == round + 1) parents.push_back(subgroup.conditions);
  }
  return rounds.best().subgroups();
}

}  // namespace fedsel
