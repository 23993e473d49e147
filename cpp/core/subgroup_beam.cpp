#include <algorithm>
#include <numeric>

#include "subgroup_search.hpp"

namespace fedsel {
namespace {

constexpr std::size_t kPoolFactor = 10;  // candidates of a diverse beam, in widths
constexpr std::size_t kChunk = 64;       // parents refined between two looks at the control

std::vector<Subgroup> chosen(const BitTable& table, const std::vector<Subgroup>& pool, const BeamOptions& beam,
                             std::size_t threads, Control& control) {
  if (beam.diversity == Diversity::none) return pool;
  std::vector<Subgroup> result;
  for (const std::size_t position :
       select_diverse(table, pool, beam.width, beam.diversity, beam.alpha, threads, control))
    result.push_back(pool[position]);
  return result;
}

}  // namespace

std::vector<Subgroup> search_beam(const BitTable& table, const Quality& quality, const SubgroupOptions& options,
                                  const BeamOptions& beam, Control& control) {
  constexpr double anything = -std::numeric_limits<double>::infinity();
  const std::size_t pool_size = beam.diversity == Diversity::none ? beam.width : kPoolFactor * beam.width;
  SubgroupList best(options.keep, options.floor), pool(pool_size, anything);
  std::vector<std::uint32_t> conditions(table.conditions());
  std::iota(conditions.begin(), conditions.end(), 0);
  std::vector<double> bounds(table.conditions());  // no description with the condition can be better
  std::vector<Description> parents{{}};
  for (std::size_t round = 0; round < options.depth && !parents.empty() && !control.stopped(); ++round) {
    for (std::size_t first = 0; first < parents.size() && !control.stopped(); first += kChunk) {
      const std::vector<Description> chunk(
          parents.begin() + static_cast<std::ptrdiff_t>(first),
          parents.begin() + static_cast<std::ptrdiff_t>(std::min(first + kChunk, parents.size())));
      const auto tallies = count_refinements(table, chunk, conditions, options.threads);
      control.evaluations.fetch_add(tallies.size(), std::memory_order_relaxed);
      for (std::size_t p = 0; p < chunk.size(); ++p)
        for (std::size_t c = 0; c < conditions.size(); ++c) {
          const Tally& tally = tallies[p * conditions.size() + c];
          if (round == 0) bounds[c] = tally.rows() < quality.support().least ? anything : quality.bound(tally);
          if (!quality.reportable(tally)) continue;
          const double value = quality.value(tally);
          if (value < best.threshold() && value < pool.threshold()) continue;
          if (std::binary_search(chunk[p].begin(), chunk[p].end(), conditions[c])) continue;
          Subgroup found{value, refined(chunk[p], conditions[c]), tally};
          pool.offer(found);
          best.offer(std::move(found));
        }
    }
    parents.clear();
    for (const auto& subgroup : chosen(table, pool.subgroups(), beam, options.threads, control))
      if (subgroup.conditions.size() == round + 1) parents.push_back(subgroup.conditions);
    const double needed = std::min(best.threshold(), pool.threshold());
    std::erase_if(conditions, [&](std::uint32_t c) { return bounds[c] < needed; });
  }
  return best.subgroups();
}

}  // namespace fedsel
