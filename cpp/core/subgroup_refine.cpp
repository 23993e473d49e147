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

// Covers of a few parents, each followed by what it shares with every digit of the outcome, against all conditions.
class Counter {
 public:
  Counter(const BitTable& table, const Description* parents, std::size_t count,
          const std::vector<std::uint32_t>& conditions)
      : table_(table),
        parents_(parents),
        parent_count_(count),
        covers_(count * (1 + table.digits())),
        conditions_(conditions),
        buffer_(covers_ * kBlockWords),
        counts_(2 * conditions.size() * covers_, 0) {}

  void add(const Block& block) {
    fill(block);
    const BitKernels& kernels = table_.kernels();
    std::size_t cover = 0;
    for (; cover + kCoverTile <= covers_; cover += kCoverTile) {
      const std::uint64_t* tile[kCoverTile];
      for (std::size_t i = 0; i < kCoverTile; ++i) tile[i] = buffer_.data() + (cover + i) * kBlockWords;
      for (std::size_t c = 0; c < conditions_.size(); ++c)
        kernels.count_tile(tile, table_.condition(conditions_[c]) + block.first, block.words,
                           at(block.high, c) + cover);
    }
    for (; cover < covers_; ++cover)
      for (std::size_t c = 0; c < conditions_.size(); ++c)
        kernels.count_one(buffer_.data() + cover * kBlockWords, table_.condition(conditions_[c]) + block.first,
                          block.words, at(block.high, c) + cover);
  }

  // Adds what was counted to the tallies of these parents.
  void collect(Tally* tallies) const {
    const std::size_t step = 1 + table_.digits();
    for (std::size_t p = 0; p < parent_count_; ++p)
      for (std::size_t c = 0; c < conditions_.size(); ++c) {
        Tally& tally = tallies[p * conditions_.size() + c];
        for (const bool high : {true, false}) {
          const std::uint32_t* counts = at(high, c) + p * step;
          std::int64_t sum = high && table_.digits() == 0 ? counts[0] : 0;  // a yes/no outcome sums to its high rows
          for (std::size_t d = 0; d < table_.digits(); ++d) sum += static_cast<std::int64_t>(counts[1 + d]) << d;
          (high ? tally.high_rows : tally.low_rows) += counts[0];
          (high ? tally.high_sum : tally.low_sum) += sum;
        }
      }
  }

 private:
  std::uint32_t* at(bool high, std::size_t condition) {
    return counts_.data() + ((high ? 0 : conditions_.size()) + condition) * covers_;
  }
  const std::uint32_t* at(bool high, std::size_t condition) const {
    return counts_.data() + ((high ? 0 : conditions_.size()) + condition) * covers_;
  }

  void fill(const Block& block) {
    std::uint64_t* cover = buffer_.data();
    for (std::size_t p = 0; p < parent_count_; ++p) {
      std::fill(cover, cover + block.words, ~std::uint64_t{0});
      for (const std::uint32_t number : parents_[p]) {
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
  const Description* parents_;
  std::size_t parent_count_, covers_;
  const std::vector<std::uint32_t>& conditions_;
  AlignedVector<std::uint64_t> buffer_;
  std::vector<std::uint32_t> counts_;  // of fewer than 2^32 rows
};

}  // namespace

std::vector<Tally> count_refinements(const BitTable& table, const std::vector<Description>& parents,
                                     const std::vector<std::uint32_t>& conditions, std::size_t threads) {
  std::vector<Tally> tallies(parents.size() * conditions.size());
  if (tallies.empty()) return tallies;
  const auto blocks = blocks_of(table);
  const std::size_t chunk = std::max<std::size_t>(1, kMostCovers / (1 + table.digits()));
  for (std::size_t first = 0; first < parents.size(); first += chunk) {
    const std::size_t count = std::min(chunk, parents.size() - first);
    const std::size_t work = table.words() * count * (1 + table.digits()) * conditions.size();
    const std::size_t workers = std::clamp<std::size_t>(work / kWordsAThread, 1, std::min(threads, blocks.size()));
    std::vector<Counter> counters;
    for (std::size_t w = 0; w < workers; ++w) counters.emplace_back(table, parents.data() + first, count, conditions);
    parallel_for(blocks.size(), workers,
                 [&](std::size_t block, std::size_t worker) { counters[worker].add(blocks[block]); });
    for (const Counter& counter : counters) counter.collect(tallies.data() + first * conditions.size());
  }
  return tallies;
}

}  // namespace fedsel
