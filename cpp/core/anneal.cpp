#include "anneal.hpp"

#include <algorithm>
#include <memory>

#include "rounds.hpp"
#include "walk.hpp"

namespace fedsel {
namespace {

constexpr std::size_t kSlice = 512;  // least evaluations that one thread takes of a chain in one go

}  // namespace

// Where chains do not divide evenly among the threads, the last ones are taken in slices, so that no thread is idle
// while another has whole chains left; only fewer than twice as many chains as threads are under way at any time.
AnnealingResult anneal(const Problem& problem, const AnnealingOptions& options, Control& control) {
  const auto& temperatures = options.temperatures;
  const std::size_t chains = options.chains, threads = std::max<std::size_t>(options.threads, 1);
  std::vector<Leaderboard> boards(chains, Leaderboard(options.keep));
  AnnealingResult result{Leaderboard(options.keep), std::vector<Chain>(chains)};
  control.planned = chains * std::min<std::uint64_t>(options.max_evaluations,
                                                     1 + temperatures.size() * options.evaluations_per_level);
  const std::size_t whole = chains / threads > 1 ? (chains / threads - 1) * threads : 0;
  const std::size_t levels = 1 + kSlice / std::max<std::size_t>(options.evaluations_per_level, 1);
  std::vector<std::size_t> rounds(chains, 1);
  for (std::size_t number = whole; number < chains; ++number)
    rounds[number] = std::max<std::size_t>((temperatures.size() + levels - 1) / levels, 1);

  std::vector<std::unique_ptr<Walk>> walks(chains);
  run_rounds(rounds, threads, [&](std::size_t number, std::size_t round) {
    auto& walk = walks[number];
    if (!walk) walk = std::make_unique<Walk>(problem, options, number);
    std::size_t level = number < whole ? 0 : round * levels;
    const std::size_t end = number < whole ? temperatures.size() : std::min(temperatures.size(), level + levels);
    bool going = true;
    for (; going && level < end; ++level) {
      const std::uint64_t left = options.max_evaluations - std::min(options.max_evaluations, walk->evaluations());
      walk->run(temperatures[level], std::min<std::uint64_t>(options.evaluations_per_level, left), control);
      going = walk->evaluations() < options.max_evaluations && !control.stopped();
    }
    if (going && round + 1 < rounds[number]) return true;
    boards[number] = walk->board();
    result.chains[number] = walk->finish(control);
    walk.reset();
    return false;
  });
  for (const auto& board : boards) result.board.merge(board);
  return result;
}

}  // namespace fedsel
