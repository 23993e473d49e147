#include "problem.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace fedsel {
namespace {

constexpr int kRepairTries = 200;  // swaps looked at for each step of a repair

Members all_clients(const LossModel& model) {
  Members all(model.clients());
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

}  // namespace

Problem::Problem(const LossModel& model, std::size_t k, Members fixed, Members free,
                 std::vector<LinearConstraint> constraints, Members fallback)
    : model_(&model),
      k_(k),
      fixed_(std::move(fixed)),
      free_(std::move(free)),
      constraints_(std::move(constraints)),
      fallback_(std::move(fallback)) {
  std::sort(fixed_.begin(), fixed_.end());
  std::sort(free_.begin(), free_.end());
  Members all = fixed_;
  all.insert(all.end(), free_.begin(), free_.end());
  std::sort(all.begin(), all.end());
  if (std::adjacent_find(all.begin(), all.end()) != all.end())
    throw std::invalid_argument("a client may be listed once only, fixed or free");
  if (!all.empty() && all.back() >= model.clients())
    throw std::invalid_argument("clients must be below " + std::to_string(model.clients()) + ", got " +
                                std::to_string(all.back()));
  if (k < 1 || k < fixed_.size() || k > all.size())
    throw std::invalid_argument("k must be between " + std::to_string(std::max<std::size_t>(1, fixed_.size())) +
                                " and " + std::to_string(all.size()) + ", got " + std::to_string(k));
  for (const auto& constraint : constraints_) {
    if (constraint.amounts.size() != model.clients())
      throw std::invalid_argument("a constraint needs one amount a client");
    for (auto amount : constraint.amounts)
      if (amount < 0 || amount > (std::int64_t{1} << 62) / static_cast<std::int64_t>(model.clients()))
        throw std::invalid_argument("amounts must not be negative, nor large enough for their sum to overflow");
  }
  if (!constraints_.empty() || !fallback_.empty()) {
    std::sort(fallback_.begin(), fallback_.end());
    const Federation check(model, fallback_);
    bool meets = fallback_.size() == k && Balance(*this, fallback_).violation() == 0.0;
    for (auto client : fixed_) meets = meets && check.contains(client);
    for (auto client : fallback_) meets = meets && std::binary_search(all.begin(), all.end(), client);
    if (!meets) throw std::invalid_argument("the fallback federation does not meet the constraints");
    // Fixed members first, as in every state of a search.
    std::stable_partition(fallback_.begin(), fallback_.end(), [&](std::uint32_t client) {
      return std::binary_search(fixed_.begin(), fixed_.end(), client);
    });
  }
}

Problem::Problem(const LossModel& model, std::size_t k) : Problem(model, k, {}, all_clients(model), {}, {}) {}

Problem Problem::restricted(Members fixed, Members free) const {
  Problem part = *this;
  part.fixed_ = std::move(fixed);
  part.free_ = std::move(free);
  part.fallback_.clear();
  std::sort(part.fixed_.begin(), part.fixed_.end());
  std::sort(part.free_.begin(), part.free_.end());
  return part;
}

Members Problem::start(Members chosen, Philox& random) const {
  Members members = fixed_;
  members.insert(members.end(), chosen.begin(), chosen.end());
  if (!constrained()) return members;
  Balance balance(*this, members);
  std::vector<std::uint8_t> inside(model_->clients(), 0);
  for (auto client : members) inside[client] = 1;
  const std::size_t patience = 20 * k_ + 100;
  for (std::size_t step = 0; step < patience; ++step) {
    double best = balance.violation();
    if (best == 0.0) return members;
    std::size_t best_position = k_;
    std::uint32_t best_client = 0;
    for (int attempt = 0; attempt < kRepairTries && choices() > 0; ++attempt) {
      const std::size_t position = fixed_.size() + random.below(static_cast<std::uint32_t>(choices()));
      const std::uint32_t client = free_[random.below(static_cast<std::uint32_t>(free_.size()))];
      if (inside[client]) continue;
      const double after = balance.violation_after(members[position], client);
      if (after < best) {
        best = after;
        best_position = position;
        best_client = client;
      }
    }
    if (best_position == k_) break;
    balance.swap(members[best_position], best_client);
    inside[members[best_position]] = 0;
    inside[best_client] = 1;
    members[best_position] = best_client;
  }
  return balance.violation() == 0.0 ? members : fallback_;
}

Members Problem::any() const {
  if (!fallback_.empty()) return fallback_;
  Members members = fixed_;
  members.insert(members.end(), free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(choices()));
  return members;
}

Members Problem::random_start(Philox& random) const {
  Members pick = free_;
  for (std::size_t i = 0; i < choices(); ++i)
    std::swap(pick[i], pick[i + random.below(static_cast<std::uint32_t>(pick.size() - i))]);
  pick.resize(choices());
  std::sort(pick.begin(), pick.end());
  return start(std::move(pick), random);
}

Balance::Balance(const Problem& problem, const Members& members) : problem_(&problem) {
  for (const auto& constraint : problem.constraints()) {
    std::int64_t sum = 0;
    for (auto client : members) sum += constraint.amounts[client];
    sums_.push_back(sum);
    const auto largest = *std::max_element(constraint.amounts.begin(), constraint.amounts.end());
    units_.push_back(static_cast<double>(std::max<std::int64_t>(largest, 1)));
  }
}

double Balance::violation_after(const std::uint32_t* out, const std::uint32_t* in) const {
  double violation = 0.0;
  for (std::size_t c = 0; c < sums_.size(); ++c) {
    const auto& constraint = problem_->constraints()[c];
    std::int64_t sum = sums_[c];
    if (out) sum -= constraint.amounts[*out];
    if (in) sum += constraint.amounts[*in];
    if (sum < constraint.lower) violation += static_cast<double>(constraint.lower - sum) / units_[c];
    if (sum > constraint.upper) violation += static_cast<double>(sum - constraint.upper) / units_[c];
  }
  return violation;
}

double Balance::excess_with(std::uint32_t in) const {
  double excess = 0.0;
  for (std::size_t c = 0; c < sums_.size(); ++c) {
    const auto& constraint = problem_->constraints()[c];
    const std::int64_t sum = sums_[c] + constraint.amounts[in];
    if (sum > constraint.upper) excess += static_cast<double>(sum - constraint.upper) / units_[c];
  }
  return excess;
}

void Balance::swap(std::uint32_t out, std::uint32_t in) {
  for (std::size_t c = 0; c < sums_.size(); ++c) {
    const auto& amounts = problem_->constraints()[c].amounts;
    sums_[c] += amounts[in] - amounts[out];
  }
}

void Balance::add(std::uint32_t in) {
  for (std::size_t c = 0; c < sums_.size(); ++c) sums_[c] += problem_->constraints()[c].amounts[in];
}

}  // namespace fedsel
