#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "parallel.hpp"
#include "subgroup_search.hpp"

namespace fedsel {
namespace {

constexpr std::size_t kBlockWords = 256;  // of a cover, built on the way: covers of all candidates are never stored

bool one_apart(const Description& a, const Description& b) {
  const Description& shorter = a.size() <= b.size() ? a : b;
  const Description& longer = a.size() <= b.size() ? b : a;
  if (longer.size() - shorter.size() > 1) return false;
  std::size_t shared = 0;
  for (const std::uint32_t condition : shorter) shared += std::binary_search(longer.begin(), longer.end(), condition);
  return shared + 1 >= longer.size();
}

std::vector<std::size_t> by_description(const std::vector<Subgroup>& candidates, std::size_t count) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < candidates.size() && chosen.size() < count; ++i) {
    const bool repeats = std::any_of(chosen.begin(), chosen.end(), [&](std::size_t j) {
      return candidates[i].quality == candidates[j].quality &&
             one_apart(candidates[i].conditions, candidates[j].conditions);
    });
    if (!repeats) chosen.push_back(i);
  }
  return chosen;
}

// levels[j] holds the rows that at least j + 1 of the chosen cover. A row covered t times weighs alpha^t, so the rows
// of a cover weigh |cover| + sum over j of (alpha^(j+1) - alpha^j) |cover and levels[j]|.
class CoverWeights {
 public:
  CoverWeights(const BitTable& table, double alpha) : table_(table), alpha_(alpha), scratch_(table.words()) {}

  void choose(const Description& description) {
    table_.cover(description, scratch_.data());
    levels_.emplace_back(table_.words(), 0);
    for (std::size_t j = levels_.size(); j-- > 0;)
      for (std::size_t w = 0; w < table_.words(); ++w)
        levels_[j][w] |= j == 0 ? scratch_[w] : scratch_[w] & levels_[j - 1][w];
  }

  // Mean weight of the rows of a subgroup.
  double mean(const Subgroup& subgroup) const {
    std::vector<std::uint32_t> counts(levels_.size(), 0);
    alignas(64) std::uint64_t cover[kBlockWords];
    for (std::size_t first = 0; first < table_.words(); first += kBlockWords) {
      const std::size_t words = std::min(kBlockWords, table_.words() - first);
      std::fill(cover, cover + words, ~std::uint64_t{0});
      for (const std::uint32_t number : subgroup.conditions) {
        const std::uint64_t* condition = table_.condition(number) + first;
        for (std::size_t w = 0; w < words; ++w) cover[w] &= condition[w];
      }
      for (std::size_t j = 0; j < levels_.size(); ++j)
        table_.kernels().count_one(cover, levels_[j].data() + first, words, &counts[j]);
    }
    const double rows = static_cast<double>(subgroup.tally.rows());
    double weight = rows, power = 1.0;
    for (const std::uint32_t count : counts) {
      weight += (alpha_ - 1.0) * power * static_cast<double>(count);
      power *= alpha_;
    }
    return weight / rows;
  }

 private:
  const BitTable& table_;
  double alpha_;
  std::vector<std::uint64_t> scratch_;
  std::vector<AlignedVector<std::uint64_t>> levels_;
};

std::vector<std::size_t> by_cover(const BitTable& table, const std::vector<Subgroup>& candidates, std::size_t count,
                                  double alpha, std::size_t threads, Control& control) {
  CoverWeights weights(table, alpha);
  std::vector<std::size_t> chosen;
  std::vector<bool> taken(candidates.size(), false);
  std::vector<double> scores(candidates.size());
  while (chosen.size() < std::min(count, candidates.size())) {
    if (control.stopped()) break;
    parallel_for(candidates.size(), threads, [&](std::size_t i, std::size_t) {
      if (!taken[i]) scores[i] = candidates[i].quality * weights.mean(candidates[i]);
    });
    std::size_t best = candidates.size();
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (!taken[i] && (best == candidates.size() || scores[i] > scores[best])) best = i;
    taken[best] = true;
    chosen.push_back(best);
    weights.choose(candidates[best].conditions);
  }
  return chosen;
}

}  // namespace

Diversity diversity_from(std::string_view name) {
  if (name == "none") return Diversity::none;
  if (name == "description") return Diversity::description;
  if (name == "cover") return Diversity::cover;
  throw std::invalid_argument("diversity must be none, description or cover, got " + std::string(name));
}

std::vector<std::size_t> select_diverse(const BitTable& table, const std::vector<Subgroup>& candidates,
                                        std::size_t count, Diversity diversity, double alpha, std::size_t threads,
                                        Control& control) {
  if (!(alpha >= 0.0 && alpha <= 1.0)) throw std::invalid_argument("alpha must be between 0 and 1");
  switch (diversity) {
    case Diversity::description:
      return by_description(candidates, count);
    case Diversity::cover:
      return by_cover(table, candidates, count, alpha, threads, control);
    case Diversity::none:
      break;
  }
  std::vector<std::size_t> first(std::min(count, candidates.size()));
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = i;
  return first;
}

}  // namespace fedsel
