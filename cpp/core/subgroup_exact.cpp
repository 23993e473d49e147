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
    for (std::size_t first = 0; first + 1 < siblings.size(); first += kChunk) {
      const std::size_t last = std::min(first + kChunk, siblings.size() - 1);
      std::vector<Description> children;
      std::vector<std::size_t> positions;
      for (std::size_t i = first; i < last; ++i)
        if (siblings[i].bound >= needed()) {
          children.push_back(refined(parent, siblings[i].condition));
          positions.push_back(i);
        }
      if (children.empty()) continue;
      if (control_.stopped()) return;
      std::vector<std::uint32_t> added;
      for (std::size_t i = positions.front() + 1; i < siblings.size(); ++i)
        if (siblings[i].bound >= needed()) added.push_back(siblings[i].condition);
      const auto tallies = count_refinements(table_, children, added, options_.threads);
      std::vector<std::vector<Extension>> next(children.size());
      for (std::size_t c = 0; c < children.size(); ++c) {
        // Siblings up to the child's own were paired with it before; `added` follows the order of the siblings.
        const auto own = std::find(added.begin(), added.end(), siblings[positions[c]].condition);
        std::size_t i = own == added.end() ? 0 : static_cast<std::size_t>(own - added.begin()) + 1;
        control_.evaluations.fetch_add(added.size() - i, std::memory_order_relaxed);
        for (; i < added.size(); ++i) {
          double bound;
          if (judge(children[c], added[i], tallies[c * added.size() + i], bound)) next[c].push_back({bound, added[i]});
        }
      }
      if (parent.size() + 2 < options_.depth)
        for (std::size_t c = 0; c < children.size(); ++c) {
          std::erase_if(next[c], [&](const Extension& extension) { return extension.bound < needed(); });
          descend(children[c], std::move(next[c]));
        }
    }
  }

  std::vector<Subgroup> run() {
    std::vector<std::uint32_t> conditions(table_.conditions());
    std::iota(conditions.begin(), conditions.end(), 0);
    const auto tallies = count_refinements(table_, {{}}, conditions, options_.threads);
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
