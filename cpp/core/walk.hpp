// One federation that walks by random swaps: what annealing and replica exchange are made of.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "anneal.hpp"

namespace fedsel {

// With its own random stream, so that walks do not depend on one another.
class Walk {
 public:
  Walk(const Problem& problem, const AnnealingOptions& options, std::size_t number)
      : problem_(problem),
        random_(options.seed, number),
        evaluator_(problem.model()),
        federation_(problem.model(),
                    options.initial_states.empty() ? problem.random_start(random_) : options.initial_states[number]),
        balance_(problem, federation_.members()),
        fixed_(static_cast<std::uint32_t>(problem.fixed().size())),
        choices_(static_cast<std::uint32_t>(problem.choices())),
        screens_(options.screen && problem.model().consistent()),
        expands_(choices_ >= kExpanded),
        error_(problem.model().screening_error()),
        trial_(problem.model().stride(), 0),
        board_(options.keep) {
    for (auto client : problem.free())
      if (!federation_.contains(client)) outsiders_.push_back(client);
    outside_ = static_cast<std::uint32_t>(outsiders_.size());
    loss_ = evaluator_.loss(federation_.sums());
    chain_.evaluations = 1;
    chain_.best = {loss_, federation_.members()};
    board_.add(loss_, federation_.members());
    if (moves()) draw();
  }

  double loss() const { return loss_; }
  bool moves() const { return choices_ > 0 && outside_ > 0; }
  std::uint64_t evaluations() const { return chain_.evaluations; }
  const Leaderboard& board() const { return board_; }

  // Takes `steps` steps at a temperature, and notes where that led.
  void run(double temperature, std::size_t steps, Control& control) {
    for (std::size_t step = 0; moves() && step < steps; ++step) {
      if (chain_.evaluations % kCheckEvery == 0) {
        report(control);
        if (control.stopped()) break;
      }
      take_step(temperature);
      count_step();
    }
    chain_.trace.push_back(loss_);
  }

  Chain finish(Control& control) {
    report(control);
    std::sort(chain_.best.members.begin(), chain_.best.members.end());
    return std::move(chain_);
  }

 private:
  // Each proposal is drawn one step ahead, so that its rows are on their way while the one before is evaluated.
  void draw() {
    next_position_ = fixed_ + random_.below(choices_);
    next_slot_ = random_.below(outside_);
  }

  void take_step(double temperature) {
    const std::uint32_t position = next_position_, slot = next_slot_;
    const std::uint32_t out = federation_.members()[position], in = outsiders_[slot];
    draw();
    ++chain_.evaluations;  // a proposal that breaks a constraint counts too, so that chains end
    if (problem_.constrained() && balance_.violation_after(out, in) > 0.0) return;
    const std::pair<std::size_t, std::size_t> next{federation_.members()[next_position_], outsiders_[next_slot_]};
    double proposed, chance = -1.0;  // the number that decides whether a worse federation is taken, once drawn
    if (screening()) {
      const double least = least_loss(out, in, next);
      if (least > loss_) {
        chance = random_.uniform();
        if (chance > std::exp((loss_ - least) / temperature) * kMargin) return;
      }
      ++passed_;
      proposed = expands_ ? evaluator_.exchange_loss(federation_.sums(), out, in, trial_.data(), next)
                          : evaluator_.loss(trial_.data());
    } else {
      proposed = evaluator_.exchange_loss(federation_.sums(), out, in, trial_.data(), next);
    }
    if (proposed > loss_) {
      if (chance < 0.0) chance = random_.uniform();
      if (chance >= std::exp((loss_ - proposed) / temperature)) return;
    }
    balance_.swap(out, in);
    federation_.swap(position, in, trial_);
    outsiders_[slot] = out;
    loss_ = proposed;
    expanded_ = false;
    board_.add(loss_, federation_.members());
    if (loss_ < chain_.best.loss) chain_.best = {loss_, federation_.members()};
  }

  // No more than the loss of a proposal: by all of it in single precision, `trial_` then holding the new sums, or by an
  // expansion, which is the closer the less a swap changes.
  double least_loss(std::uint32_t out, std::uint32_t in, std::pair<std::size_t, std::size_t> next) {
    if (!expands_) return evaluator_.exchange_screen(federation_.sums(), out, in, trial_.data(), next) - error_;
    if (!expanded_) {
      evaluator_.expand_at(federation_.sums(), loss_);
      expanded_ = true;
    }
    return evaluator_.exchange_bound(out, in, next);
  }

  // Screening: a proposal is first evaluated in single precision. If even the least loss that leaves open would be
  // refused, so would the exact one, with the same random number: the walk goes where it would have gone, for less.
  // Only where most proposals pass does that not pay; then it rests for a while. In federations of many members, the
  // next try is with the other bound: which of the two refuses more depends on the pool and on the temperature.
  bool screening() const { return screens_ && window_ < kScreened; }

  void count_step() {
    const bool rests = 2 * passed_ > kScreened;
    if (!screens_ || ++window_ < (rests ? kScreened + kUnscreened : kScreened)) return;
    if (rests && choices_ >= kExpanded) expands_ = !expands_;
    window_ = passed_ = 0;
  }

  void report(Control& control) {
    control.evaluations.fetch_add(chain_.evaluations - reported_, std::memory_order_relaxed);
    reported_ = chain_.evaluations;
  }

  static constexpr std::size_t kScreened = 64, kUnscreened = 256;  // steps of a window
  static constexpr std::size_t kExpanded = 48;                     // members to choose from which on expansions pay
  static constexpr double kMargin = 1.0 + 0x1p-50;                 // more than the exponential is off by
  static constexpr std::uint64_t kCheckEvery = 16;                 // evaluations between two looks at the clock

  const Problem& problem_;
  Philox random_;
  Evaluator evaluator_;
  Federation federation_;
  Balance balance_;
  const std::uint32_t fixed_, choices_;
  const bool screens_;
  bool expands_;           // which bound proposals are screened by
  bool expanded_ = false;  // whether the evaluator holds the current sums
  const double error_;
  std::size_t window_ = 0, passed_ = 0;  // steps in this window, and how many of those screened passed
  AlignedVector<std::int32_t> trial_;
  Leaderboard board_;
  Members outsiders_;
  std::uint32_t outside_ = 0, next_position_ = 0, next_slot_ = 0;
  double loss_ = 0.0;
  std::uint64_t reported_ = 0;
  Chain chain_;
};

}  // namespace fedsel
