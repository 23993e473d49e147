#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "anneal.hpp"
#include "parallel.hpp"
#include "rounds.hpp"
#include "walk.hpp"

namespace fedsel {

AnnealingResult temper(const Problem& problem, const TemperingOptions& options, Control& control) {
  const auto& ladder = options.walk.temperatures;
  const std::size_t replicas = ladder.size(), length = std::max<std::size_t>(options.walk.evaluations_per_level, 1);
  control.planned = replicas * (1 + options.rounds * length);
  std::vector<std::unique_ptr<Walk>> walks(replicas);
  parallel_for(replicas, options.walk.threads, [&](std::size_t number, std::size_t) {
    walks[number] = std::make_unique<Walk>(problem, options.walk, number);
  });
  std::vector<std::size_t> at(replicas);  // the walk at each temperature
  std::iota(at.begin(), at.end(), std::size_t{0});

  // By turns those that start at an even and at an odd level.
  const auto partner = [&](std::size_t level, std::size_t round) {
    if (level % 2 == round % 2) return level + 1 < replicas ? level + 1 : level;
    return level > 0 ? level - 1 : level;
  };
  // Neighbours at temperatures a > b trade places with probability exp((1/b - 1/a) (loss at b - loss at a)), at most 1.
  // Every meeting has a random stream of its own, since they come in no fixed order.
  const auto meet = [&](std::size_t one, std::size_t other, std::size_t round) {
    const std::size_t hot = std::min(one, other), cold = hot + 1;
    const double gain = walks[at[cold]]->loss() - walks[at[hot]]->loss();
    const double exponent = (1.0 / ladder[cold] - 1.0 / ladder[hot]) * gain;
    Philox random(options.walk.seed, ~static_cast<std::uint64_t>(round * replicas + hot));
    if (exponent >= 0.0 || random.uniform() < std::exp(exponent)) std::swap(at[hot], at[cold]);
  };
  run_rounds(
      std::vector<std::size_t>(replicas, options.rounds), options.walk.threads,
      [&](std::size_t level, std::size_t) {
        if (control.stopped()) return false;
        walks[at[level]]->run(ladder[level], length, control);
        return !control.stopped();
      },
      partner, meet);

  AnnealingResult result{Leaderboard(options.walk.keep), {}};
  for (const auto& walk : walks) {
    result.board.merge(walk->board());
    result.chains.push_back(walk->finish(control));
  }
  return result;
}

}  // namespace fedsel
