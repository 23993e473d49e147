// The best few descriptions seen, in an order that does not depend on when each was seen.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "subgroup_quality.hpp"

namespace fedsel {

using Description = std::vector<std::uint32_t>;  // strictly increasing condition numbers; all must hold

struct Subgroup {
  double quality;
  Description conditions;
  Tally tally;
};

// The tie rule: higher quality first, then fewer conditions, then the lower condition numbers.
inline bool ranks_before(const Subgroup& a, const Subgroup& b) {
  if (a.quality != b.quality) return a.quality > b.quality;
  if (a.conditions.size() != b.conditions.size()) return a.conditions.size() < b.conditions.size();
  return a.conditions < b.conditions;
}

class SubgroupList {
 public:
  // Holds at most `capacity` descriptions, all of a quality above `floor`.
  SubgroupList(std::size_t capacity, double floor) : capacity_(capacity), floor_(floor) {}

  // Nothing of a lower quality would enter.
  double threshold() const { return subgroups_.size() < capacity_ ? floor_ : subgroups_.back().quality; }

  // A description that is there already stays there once.
  void offer(Subgroup subgroup) {
    if (capacity_ == 0 || !(subgroup.quality > floor_) || subgroup.quality < threshold()) return;
    const auto place = std::lower_bound(subgroups_.begin(), subgroups_.end(), subgroup, ranks_before);
    if (place != subgroups_.end() && place->conditions == subgroup.conditions) return;
    subgroups_.insert(place, std::move(subgroup));
    if (subgroups_.size() > capacity_) subgroups_.pop_back();
  }

  const std::vector<Subgroup>& subgroups() const { return subgroups_; }

 private:
  std::size_t capacity_;
  double floor_;
  std::vector<Subgroup> subgroups_;
};

// `parent` and one more condition, in order.
inline Description refined(const Description& parent, std::uint32_t condition) {
  Description result(parent);
  result.insert(std::upper_bound(result.begin(), result.end(), condition), condition);
  return result;
}

}  // namespace fedsel
