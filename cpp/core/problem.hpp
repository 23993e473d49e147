// What a search may choose: the size, members that must or must not be in, and linear constraints on the members.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "federation.hpp"
#include "philox.hpp"

namespace fedsel {

// lower <= sum over members of amounts[client] <= upper. Group quotas (amounts 0 and 1), budgets and least numbers of
// records are all of this form. Amounts are integers, so that sums are exact in any order, and not negative.
struct LinearConstraint {
  std::vector<std::int64_t> amounts;  // one a client
  std::int64_t lower = std::numeric_limits<std::int64_t>::min();
  std::int64_t upper = std::numeric_limits<std::int64_t>::max();
};

class Problem {
 public:
  // `fixed`: members of every federation. `free`: the other clients that may be members. `fallback`: a federation that
  // meets all constraints, for starts that cannot be repaired; may be empty where there are no constraints.
  // Throws std::invalid_argument if these do not fit each other.
  Problem(const LossModel& model, std::size_t k, Members fixed, Members free, std::vector<LinearConstraint> constraints,
          Members fallback);

  // All clients free, no constraints.
  Problem(const LossModel& model, std::size_t k);

  // The same with other fixed and free clients; no federation need keep the constraints, so it has no starts.
  Problem restricted(Members fixed, Members free) const;

  const LossModel& model() const { return *model_; }
  std::size_t k() const { return k_; }
  const Members& fixed() const { return fixed_; }
  const Members& free() const { return free_; }
  std::size_t choices() const { return k_ - fixed_.size(); }  // members to choose
  const std::vector<LinearConstraint>& constraints() const { return constraints_; }
  bool constrained() const { return !constraints_.empty(); }

  // The members to start a search from: fixed ones first, then the chosen ones, repaired by swaps to meet the
  // constraints, or else the fallback.
  Members start(Members chosen, Philox& random) const;
  Members random_start(Philox& random) const;
  // Some federation that meets the constraints.
  Members any() const;

 private:
  const LossModel* model_;
  std::size_t k_;
  Members fixed_, free_;
  std::vector<LinearConstraint> constraints_;
  Members fallback_;
};

// The constraints' sums over the current members, kept up to date.
class Balance {
 public:
  Balance(const Problem& problem, const Members& members);

  // How far the sums are outside their bounds, each in units of the constraint's largest amount; 0 if they are inside.
  double violation() const { return violation_after(nullptr, nullptr); }
  double violation_after(std::uint32_t out, std::uint32_t in) const { return violation_after(&out, &in); }
  // Only sums above their upper bounds count: what adding members cannot mend.
  double excess_with(std::uint32_t in) const;

  void swap(std::uint32_t out, std::uint32_t in);
  void add(std::uint32_t in);

 private:
  double violation_after(const std::uint32_t* out, const std::uint32_t* in) const;

  const Problem* problem_;
  std::vector<std::int64_t> sums_;
  std::vector<double> units_;
};

}  // namespace fedsel
