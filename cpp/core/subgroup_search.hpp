// Searches for the descriptions of highest quality.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "control.hpp"
#include "subgroup_bits.hpp"
#include "subgroup_list.hpp"
#include "subgroup_quality.hpp"

namespace fedsel {

enum class Diversity { none, description, cover };
Diversity diversity_from(std::string_view name);

struct SubgroupOptions {
  std::size_t depth;  // most conditions of a description, at least 1
  std::size_t keep;   // descriptions to return
  double floor;       // only qualities above it are returned
  std::size_t threads;
};

struct BeamOptions {
  std::size_t width;  // descriptions refined, at least 1
  Diversity diversity = Diversity::none;
  double alpha = 0.9;  // see select_diverse
};

// Beam search. The beam holds the `width` best descriptions found so far, of any number of conditions and quality; in
// each of `depth` rounds those that came in by the round before are refined by every condition. With a diversity, it
// holds a diverse choice of `width` of the best ten times as many.
std::vector<Subgroup> search_beam(const BitTable& table, const Quality& quality, const SubgroupOptions& options,
                                  const BeamOptions& beam, Control& control);

// The best descriptions of all, proved by bounds: a depth-first walk that leaves out what cannot beat the list so far.
// If the control stops it, the best so far.
std::vector<Subgroup> search_exact(const BitTable& table, const Quality& quality, const SubgroupOptions& options,
                                   Control& control);

// A column of category codes of which each stands for at most one condition: conditions[code], or none where negative.
struct CategoryColumn {
  CodeColumn codes;
  std::vector<std::int64_t> conditions;
};

// The best of all descriptions of at most three conditions, each of another column, by counting the tables of all sets
// of columns with a yes/no outcome. Same result as search_exact.
std::vector<Subgroup> search_marginals(const std::vector<CategoryColumn>& columns, const std::uint8_t* outcomes,
                                       std::size_t rows, const Quality& quality, const SubgroupOptions& options,
                                       Control& control);

// `count` of the candidates (in order of quality), chosen one by one (van Leeuwen and Knobbe 2012). By description: the
// next best, unless one chosen before has the same quality and all but one of its conditions, or it of that one's. By
// cover: the largest quality times mean of alpha^(times a covered row is covered by those chosen before). Ties go to
// the better candidate. Returns positions in order of choice.
std::vector<std::size_t> select_diverse(const BitTable& table, const std::vector<Subgroup>& candidates,
                                        std::size_t count, Diversity diversity, double alpha, std::size_t threads,
                                        Control& control);

}  // namespace fedsel
