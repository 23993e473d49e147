// A lower bound on the loss of every federation of a problem that is a quadratic form, so that all federations whose
// bound is low can be enumerated (quadratic_search.hpp).
//
// Let tables agree (layout.hpp), x be the cells of a federation W of N records, margins among them, p = x / N and c_x
// the weight of a cell: the loss is sum_x c_x p_x log2 p_x. Let q be any tables that agree too and are positive
// wherever a client is, u = p / q, and psi(u) = u ln u - u + 1. Since sum_x c_x (p_x - q_x) = 0,
//
//     loss(W) = sum_x c_x p_x log2 q_x + (1 / ln 2) sum_x c_x q_x psi(u_x),
//
// exactly. By Taylor's formula psi(u) = (u - 1)^2 gamma(u) with gamma(u) = int_0^1 (1 - s) / (1 + s (u - 1)) ds, which
// falls from 1 at u = 0 through 1/2 at 1. So where all federations of the problem have u between a and b,
//
//     gamma(b) (u - 1)^2 <= psi(u) <= gamma(a) (u - 1)^2,
//
// and taking the lower one for cells of positive weight, the upper one for others, bounds the loss from below by
// s_W / N + z'Kz / (2 N^2): what the second-order model has 1/2 for is gamma here. The bounds a and b of a cell are the
// least and largest ratio sum x / sum n of any k members (Dinkelbach 1967: a few selections each). They close in on 1
// as members are decided and q follows, and the bound on the loss itself.
#pragma once

#include <vector>

#include "problem.hpp"
#include "quadratic.hpp"

namespace fedsel {

class Minorant {
 public:
  // `likely`: members of a federation of low loss; q is mostly theirs. All clients of the problem must have records,
  // and the model must be consistent.
  Minorant(const Problem& problem, const Members& likely);

  // A federation's value under this model is at most its loss plus allowance().
  const QuadraticModel& model() const { return model_; }

  // More than rounding can do to a value, in bits.
  double allowance() const { return allowance_; }

  // The free client that lies farthest from q, counted by records: deciding on it narrows the bounds most.
  std::uint32_t farthest() const { return farthest_; }

  static constexpr std::size_t kMaxClients = 1024;  // a second each
  static bool applies(const Problem& problem);

 private:
  QuadraticModel model_;
  double allowance_ = 0.0;
  std::uint32_t farthest_ = 0;
};

}  // namespace fedsel
