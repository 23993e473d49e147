#include "loss_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace fedsel {
namespace {

// Screening works in single precision, which must hold the weights.
void check_weights(const Components& weights) {
  for (double weight : weights)
    if (!(std::abs(weight) <= 1e12)) throw std::invalid_argument("weights must be finite, and at most 1e12");
}

}  // namespace

LossModel::LossModel(const std::int32_t* counts, std::size_t clients, std::vector<TableSpec> tables,
                     const Components& weights, Level level)
    : clients_(clients), weights_(weights), level_(level) {
  check_weights(weights);
  if (clients == 0) throw std::invalid_argument("a loss needs at least one client");
  if (tables.empty()) throw std::invalid_argument("a loss needs at least one table");
  std::size_t packed_cells = 0;
  for (const auto& spec : tables) {
    if (spec.rows == 0 || spec.columns == 0) throw std::invalid_argument("a table needs at least one cell");
    if (spec.component >= kComponents)
      throw std::invalid_argument("component must be below 4, got " + std::to_string(spec.component));
    tables_.push_back({spec.rows, spec.columns, cells_});
    component_.push_back(spec.component);
    table_weights_.push_back(weights[spec.component]);
    packed_cells += static_cast<std::size_t>(spec.rows) * spec.columns;
    cells_ += padded(static_cast<std::size_t>(spec.rows) * spec.columns);
  }
  stride_ = cells_ + kLanes;
  auto rows = std::make_shared<AlignedVector<std::int32_t>>(clients * stride_, 0);
  std::vector<std::int64_t> absolute(tables.size(), 0);
  for (std::size_t i = 0; i < clients; ++i) {
    const std::int32_t* from = counts + i * packed_cells;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      const std::size_t size = static_cast<std::size_t>(tables[t].rows) * tables[t].columns;
      std::copy_n(from, size, rows->begin() + static_cast<std::ptrdiff_t>(i * stride_ + tables_[t].offset));
      for (std::size_t c = 0; c < size; ++c) absolute[t] += std::llabs(static_cast<long long>(from[c]));
      from += size;
    }
  }
  for (std::size_t t = 0; t < tables.size(); ++t)
    if (absolute[t] > std::numeric_limits<std::int32_t>::max())
      throw std::invalid_argument("table " + std::to_string(t) + ": absolute counts of all clients sum to " +
                                  std::to_string(absolute[t]) + ", they must stay below 2^31");
  rows_ = std::move(rows);
}

LossModel LossModel::reweighted(const Components& weights) const {
  check_weights(weights);
  LossModel model = *this;
  model.weights_ = weights;
  for (std::size_t t = 0; t < tables_.size(); ++t) model.table_weights_[t] = weights[component_[t]];
  return model;
}

std::vector<double> LossModel::records() const {
  std::vector<double> result(clients_);
  for (std::size_t i = 0; i < clients_; ++i) {
    std::int64_t sum = 0;
    for (std::size_t c = 0; c < cells_; ++c) sum += row(i)[c];
    result[i] = std::max(1.0, static_cast<double>(sum) / static_cast<double>(tables_.size()));
  }
  return result;
}

double LossModel::loss_of(const Components& components) const {
  double loss = 0.0;
  for (std::size_t c = 0; c < kComponents; ++c) loss += weights_[c] * components[c];
  return loss;
}

Evaluator::Evaluator(const LossModel& model)
    : model_(&model),
      kernels_(&kernels(model.level())),
      scratch_(scratch_cells(model.tables().data(), model.tables().size())),
      work_(padded(model.tables().size()) * (kLanes + 1)),
      information_(padded(model.tables().size())),
      float_weights_(model.table_weights().begin(), model.table_weights().end()),
      screening_error_(
          fedsel::screening_error(model.tables().data(), model.tables().size(), model.table_weights().data())) {}

const double* Evaluator::information(const std::int32_t* sums) {
  kernels_->information(model_->tables_.data(), model_->tables_.size(), sums, scratch_.data(), work_.data(),
                        information_.data());
  return information_.data();
}

Components Evaluator::components(const std::int32_t* sums) {
  const double* table = information(sums);
  Components result{};
  for (std::size_t t = 0; t < model_->tables_.size(); ++t) result[model_->component_[t]] += table[t];
  return result;
}

void Evaluator::lane_losses(const std::int32_t* base, const std::int32_t* lanes, double* losses) {
  kernels_->lane_losses(model_->tables_.data(), model_->tables_.size(), model_->table_weights_.data(), base, lanes,
                        scratch_.data(), losses);
}

void Evaluator::screen(const std::int32_t* base, const std::int32_t* lanes, float origin, float* losses) {
  kernels_->screen(model_->tables_.data(), model_->tables_.size(), float_weights_.data(), base, lanes, origin,
                   scratch_.data(), losses);
}

void Evaluator::exchange(const std::int32_t* from, std::size_t out, std::size_t in, std::int32_t* to) {
  kernels_->exchange(model_->cells(), from, model_->row(out), model_->row(in), to);
}

}  // namespace fedsel
