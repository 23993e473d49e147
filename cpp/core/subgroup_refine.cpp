#include <algorithm>

#include "parallel.hpp"
#include "subgroup_bits.hpp"

namespace fedsel {
namespace {

constexpr std::size_t kBlockWords = 256;        // a block of all covers and of a hundred conditions fits the L2 cache
constexpr std::size_t kMostCovers = 64;         // counted at a time
constexpr std::size_t kWordsAThread = 1 << 17;  // words to be counted before a second thread pays for its start

// Rows [first, first + words) of one region.
struct Block {
  std::size_t first, words;
  bool high;
};

std::vector<Block> blocks_of(const BitTable& table) {
  std::vector<Block> blocks;
  for (const bool high : {true, false}) {
    const std::size_t end = high ? table.high_words() : table.words();
    for (std::size_t first = high ? 0 : table.high_words(); first < end; first += kBlockWords)
      blocks.push_back({first, std::min(kBlockWords, end - first), high});
  }
  return blocks;
}

// Some groups: covers of their parents, each followed by what it shares with every digit of the outcome, against the
// group's conditions.
class Counter {
 public:
  Counter(const BitTable& table, const RefinementGroup* groups, std::size_t count)
      : table_(table), groups_(groups), group_count_(count) {
    std::size_t covers = 0, counts = 0;
    for (std::size_t g = 0; g < count; ++g) {
      first_count_.push_back(counts);
      covers += covers_of(groups[g]);
      counts += 2 * covers_of(groups[g]) * groups[g].conditions.size();
    }
    buffer_.resize(covers * kBlockWords);
    counts_.assign(counts, 0);
  }

  void add(const Block& block) {
    fill(block);
    const std::uint64_t* covers = buffer_.data();
    for (std::size_t g = 0; g < group_count_; ++g) {
      add_group(block, g, covers);
      covers += covers_of(groups_[g]) * kBlockWords;
    }
  }

  // Adds what was counted to the tallies of these groups.
  void collect(std::vector<Tally>* tallies) const {
    const std::size_t step = 1 + table_.digits();
    for (std::size_t g = 0; g < group_count_; ++g)
      for (std::size_t p = 0; p < groups_[g].parents.size(); ++p)
        for (std::size_t c = 0; c < groups_[g].conditions.size(); ++c) {
          Tally& tally = tallies[g][p * groups_[g].conditions.size() + c];
          for (const bool high : {true, false}) {
            const std::uint32_t* counts = counts_.data() + place(g, high, c) + p * step;
            std::int64_t sum = high && table_.digits() == 0 ? counts[0] : 0;  // a yes/no outcome sums to its high rows
            for (std::size_t d = 0; d < table_.digits(); ++d) sum += static_cast<std::int64_t>(counts[1 + d]) << d;
            (high ? tally.high_rows : tally.low_rows) += counts[0];
            (high ? tally.high_sum : tally.low_sum) += sum;
          }
        }
  }

 private:
  std::size_t covers_of(const RefinementGroup& group) const { return group.parents.size() * (1 + table_.digits()); }

  // Where the counts of a group's covers for one condition and region stand.
  std::size_t place(std::size_t group, bool high, std::size_t condition) const {
    const RefinementGroup& g = groups_[group];
    return first_count_[group] + ((high ? 0 : g.conditions.size()) + condition) * covers_of(g);
  }

  void add_group(const Block& block, std::size_t group, const std::uint64_t* covers) {
    const BitKernels& kernels = table_.kernels();
    const auto& conditions = groups_[group].conditions;
    const std::size_t count = covers_of(groups_[group]);
    std::size_t cover = 0;
    for (; cover + kCoverTile <= count; cover += kCoverTile) {
      const std::uint64_t* tile[kCoverTile];
      for (std::size_t i = 0; i < kCoverTile; ++i) tile[i] = covers + (cover + i) * kBlockWords;
      for (std::size_t c = 0; c < conditions.size(); ++c)
        kernels.count_tile(tile, table_.condition(conditions[c]) + block.first, block.words,
                           counts_.data() + place(group, block.high, c) + cover);
    }
    for (; cover < count; ++cover)
      for (std::size_t c = 0; c < conditions.size(); ++c)
        kernels.count_one(covers + cover * kBlockWords, table_.condition(conditions[c]) + block.first, block.words,
                          counts_.data() + place(group, block.high, c) + cover);
  }

  void fill(const Block& block) {
    std::uint64_t* cover = buffer_.data();
    for (std::size_t g = 0; g < group_count_; ++g)
      for (const Description& parent : groups_[g].parents) {
        std::fill(cover, cover + block.words, ~std::uint64_t{0});
        for (const std::uint32_t number : parent) {
          const std::uint64_t* condition = table_.condition(number) + block.first;
          for (std::size_t w = 0; w < block.words; ++w) cover[w] &= condition[w];
        }
        for (std::size_t d = 0; d < table_.digits(); ++d) {
          const std::uint64_t* digit = table_.digit(d) + block.first;
          std::uint64_t* shared = cover + (1 + d) * kBlockWords;
          for (std::size_t w = 0; w < block.words; ++w) shared[w] = cover[w] & digit[w];
        }
        cover += (1 + table_.digits()) * kBlockWords;
      }
  }

  const BitTable& table_;
  const RefinementGroup* groups_;
  std::size_t group_count_;
  std::vector<std::size_t> first_count_;
  AlignedVector<std::uint64_t> buffer_;
  std::vector<std::uint32_t> counts_;  // of fewer than 2^32 rows
};

}  // namespace

std::size_t group_size(const BitTable& table) { return table.digits() == 0 ? kCoverTile : 1; }

std::vector<std::vector<Tally>> count_refinements(const BitTable& table, const std::vector<RefinementGroup>& groups,
                                                  std::size_t threads) {
  std::vector<std::vector<Tally>> tallies;
  for (const RefinementGroup& group : groups) tallies.emplace_back(group.parents.size() * group.conditions.size());
  const auto blocks = blocks_of(table);
  for (std::size_t first = 0, last = 0; first < groups.size(); first = last) {
    std::size_t covers = 0, pairs = 0;
    for (; last < groups.size() && (last == first || covers < kMostCovers); ++last) {
      covers += groups[last].parents.size() * (1 + table.digits());
      pairs += groups[last].parents.size() * (1 + table.digits()) * groups[last].conditions.size();
    }
    if (pairs == 0) continue;
    const std::size_t work = table.words() * pairs;
    const std::size_t workers = std::clamp<std::size_t>(work / kWordsAThread, 1, std::min(threads, blocks.size()));
    std::vector<Counter> counters;
    for (std::size_t w = 0; w < workers; ++w) counters.emplace_back(table, groups.data() + first, last - first);
    parallel_for(blocks.size(), workers,
                 [&](std::size_t block, std::size_t worker) { counters[worker].add(blocks[block]); });
    for (const Counter& counter : counters) counter.collect(tallies.data() + first);
  }
  return tallies;
}

}  // namespace fedsel
