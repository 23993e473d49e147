#include <algorithm>
#include <numeric>

#include "subgroup_search.hpp"

namespace fedsel {
namespace {

constexpr std::size_t kChunk = 32;  // siblings refined at a time

// A condition that may be added to a description, with a bound on what has both.
struct Extension {
  double bound;
  std::uint32_t condition;
};

class Walk {
 public:
  Walk(const BitTable& table, const Quality& quality, const SubgroupOptions& options, double known, Control& control)
      : table_(table),
        quality_(quality),
        options_(options),
        known_(known),
        control_(control),
        best_(options.keep, options.floor) {}

  // Offers the refinement and says whether refining it further could be worth it.
  bool judge(const Description& parent, std::uint32_t condition, const Tally& tally, double& bound) {
    if (tally.rows() < quality_.support().least) return false;
    if (quality_.reportable(tally)) {
      const double value = quality_.value(tally);
      if (value >= needed()) best_.offer({value, refined(parent, condition), tally});
    }
    bound = quality_.bound(tally);
    return bound >= needed();
  }

  // Refines parent + each of `siblings` by the siblings after it. Those of low bound come first: they meet most others,
  // and few of those pairs survive.
  void descend(const Description& parent, std::vector<Extension> siblings) {
    std::sort(siblings.begin(), siblings.end(), [](const Extension& a, const Extension& b) {
      return a.bound != b.bound ? a.bound < b.bound : a.condition < b.condition;
    });
    const std::size_t size = group_size(table_);
    for (std::size_t next = 0; next + 1 < siblings.size();) {
      if (control_.stopped()) return;
      std::vector<RefinementGroup> groups;
      std::vector<std::size_t> children;  // positions among the siblings, group by group
      for (; groups.size() * size < kChunk && next + 1 < siblings.size();) {
        RefinementGroup group;
        const std::size_t first = next;
        for (; group.parents.size() < size && next + 1 < siblings.size(); ++next)
          if (siblings[next].bound >= needed()) {
            group.parents.push_back(refined(parent, siblings[next].condition));
            children.push_back(next);
          }
        for (std::size_t i = first; i < siblings.size(); ++i)
          if (siblings[i].bound >= needed()) group.conditions.push_back(siblings[i].condition);
        groups.push_back(std::move(group));
      }
      const auto tallies = count_refinements(table_, groups, options_.threads);
      std::vector<std::vector<Extension>> extensions(children.size());
      std::size_t child = 0;
      for (std::size_t g = 0; g < groups.size(); ++g)
        for (std::size_t p = 0; p < groups[g].parents.size(); ++p, ++child) {
          // Siblings up to the child's own were paired with it before; the conditions follow the order of the siblings.
          const auto& added = groups[g].conditions;
          const auto own = std::find(added.begin(), added.end(), siblings[children[child]].condition);
          std::size_t i = static_cast<std::size_t>(own - added.begin()) + 1;
          control_.evaluations.fetch_add(added.size() - i, std::memory_order_relaxed);
          for (; i < added.size(); ++i) {
            double bound;
            if (judge(groups[g].parents[p], added[i], tallies[g][p * added.size() + i], bound))
              extensions[child].push_back({bound, added[i]});
          }
        }
      if (parent.size() + 2 >= options_.depth) continue;
      child = 0;
      for (const RefinementGroup& group : groups)
        for (const Description& description : group.parents) {
          std::erase_if(extensions[child], [&](const Extension& extension) { return extension.bound < needed(); });
          descend(description, std::move(extensions[child++]));
        }
    }
  }

  std::vector<Subgroup> run() {
    std::vector<std::uint32_t> conditions(table_.conditions());
    std::iota(conditions.begin(), conditions.end(), 0);
    const auto tallies = count_refinements(table_, {{{{}}, conditions}}, options_.threads).front();
    control_.evaluations.fetch_add(tallies.size(), std::memory_order_relaxed);
    std::vector<Extension> extensions;
    for (const std::uint32_t condition : conditions) {
      double bound;
      if (judge({}, condition, tallies[condition], bound)) extensions.push_back({bound, condition});
    }
    if (options_.depth > 1) descend({}, std::move(extensions));
    return best_.subgroups();
  }

 private:
  double needed() const { return std::max(known_, best_.threshold()); }

  const BitTable& table_;
  const Quality& quality_;
  const SubgroupOptions& options_;
  double known_;  // as good as this is the last of the list at least
  Control& control_;
  SubgroupList best_;
};

}  // namespace

std::vector<Subgroup> search_exact(const BitTable& table, const Quality& quality, const SubgroupOptions& options,
                                   Control& control) {
  // A beam search costs little and gives a quality that the list must reach.
  const auto seed = search_beam(table, quality, options, {std::clamp<std::size_t>(options.keep, 1, 64)}, control);
  const double known = seed.size() == options.keep ? seed.back().quality : options.floor;
  const std::vector<Subgroup> best = Walk(table, quality, options, known, control).run();
  if (control.reason() == StopReason::completed) return best;
  SubgroupList all(options.keep, options.floor);  // stopped early: the beam may know better
  for (const auto* list : {&best, &seed})
    for (const auto& subgroup : *list) all.offer(subgroup);
  return all.subgroups();
}

}  // namespace fedsel
