// The second-order model of the loss: one clients x clients matrix instead of thousands of cells.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "control.hpp"
#include "federation.hpp"
#include "loss_model.hpp"

namespace fedsel {

// With q the tables of a reference federation, p_i the proportions of client i, d_i = p_i - q and n_i its records,
//
//     loss(W) ~ s_W / n_W + z'Kz / (2 n_W^2),    s_W, n_W sums over the members, z their indicator,
//
// where s_i = n_i sum_t w_t sum_xy p_i,xy log2 q_xy / (q_x q_y), and, expanding each table's x log2 x around q,
//
//     K_ij = n_i n_j sum_t (w_t / ln 2) [ sum_xy d_i d_j / q_xy - sum_x d_i d_j / q_x - sum_y d_i d_j / q_y ].
//
// The error is of third order in the distance of W from q. Cells that the reference lacks are left out.
class QuadraticModel {
 public:
  // Throws std::invalid_argument for more than kMaxClients clients. Where `control` stops it, ready() is false.
  QuadraticModel(const LossModel& model, const Members& reference, std::size_t threads, Control& control);

  // A form of the same kind from its parts; see minorant.hpp. `couplings`: clients x clients.
  QuadraticModel(std::vector<double> records, std::vector<double> scores, std::vector<double> couplings)
      : records_(std::move(records)), scores_(std::move(scores)), couplings_(std::move(couplings)), ready_(true) {}
  QuadraticModel() = default;

  static constexpr std::size_t kMaxClients = 4096;

  bool ready() const { return ready_; }
  std::size_t clients() const { return records_.size(); }
  double records(std::size_t client) const { return records_[client]; }
  double score(std::size_t client) const { return scores_[client]; }
  const double* couplings(std::size_t client) const { return couplings_.data() + client * clients(); }

  // The model's value for members, in bits; the same to the bit for members in the same order.
  double loss(const Members& members) const;

 private:
  std::vector<double> records_, scores_, couplings_;
  bool ready_ = false;
};

// A federation under the model: a swap is evaluated in O(1) and made in O(clients).
class QuadraticState {
 public:
  QuadraticState(const QuadraticModel& model, const Members& members);

  double loss() const { return loss_of(records_, score_, form_); }

  double swapped_loss(std::uint32_t out, std::uint32_t in) const {
    const double* leaving = model_->couplings(out);
    const double* entering = model_->couplings(in);
    const double form = form_ - 2.0 * (pull_[out] - pull_[in] + leaving[in]) + leaving[out] + entering[in];
    return loss_of(records_ - model_->records(out) + model_->records(in),
                   score_ - model_->score(out) + model_->score(in), form);
  }

  void swap(std::uint32_t out, std::uint32_t in);

 private:
  static double loss_of(double records, double score, double form) {
    const double inverse = 1.0 / records;
    return (score + 0.5 * form * inverse) * inverse;
  }

  const QuadraticModel* model_;
  double records_ = 0.0, score_ = 0.0, form_ = 0.0;  // sums over the members; form = z'Kz
  std::vector<double> pull_;                         // Kz
};

}  // namespace fedsel
