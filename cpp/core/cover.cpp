#include "cover.hpp"

#include <algorithm>

namespace fedsel {
namespace {

bool contains(const VariableSet& outer, const VariableSet& inner) {
  return std::includes(outer.begin(), outer.end(), inner.begin(), inner.end());
}

void insert_sorted(VariableSet& set, std::uint32_t variable) {
  set.insert(std::lower_bound(set.begin(), set.end(), variable), variable);
}

}  // namespace

std::vector<JointTable> cover(const std::vector<std::uint32_t>& domain, const std::vector<VariableSet>& requests,
                              std::size_t max_cells) {
  std::vector<std::vector<std::size_t>> requests_with(domain.size());
  for (std::size_t r = 0; r < requests.size(); ++r)
    for (auto v : requests[r]) requests_with[v].push_back(r);

  std::vector<bool> covered(requests.size(), false);
  std::vector<JointTable> joints;
  for (std::size_t seed = 0; seed < requests.size(); ++seed) {
    if (covered[seed]) continue;
    JointTable joint{requests[seed], {}};
    std::size_t cells = 1;
    for (auto v : joint.variables) cells *= domain[v];

    // Add the variable that brings the most uncovered requests (the smaller domain on a tie) while any fits.
    for (;;) {
      std::size_t best_gain = 0;
      std::uint32_t best = 0;
      for (std::uint32_t v = 0; v < domain.size(); ++v) {
        if (cells * domain[v] > max_cells || std::binary_search(joint.variables.begin(), joint.variables.end(), v))
          continue;
        VariableSet grown = joint.variables;
        insert_sorted(grown, v);
        std::size_t gain = 0;
        for (auto r : requests_with[v]) gain += !covered[r] && contains(grown, requests[r]);
        if (gain > best_gain || (gain == best_gain && gain > 0 && domain[v] < domain[best])) {
          best_gain = gain;
          best = v;
        }
      }
      if (best_gain == 0) break;
      insert_sorted(joint.variables, best);
      cells *= domain[best];
    }
    for (std::size_t r = seed; r < requests.size(); ++r)
      if (!covered[r] && contains(joint.variables, requests[r])) {
        covered[r] = true;
        joint.requests.push_back(r);
      }
    joints.push_back(std::move(joint));
  }
  return joints;
}

}  // namespace fedsel
