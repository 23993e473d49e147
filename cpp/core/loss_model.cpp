#include "loss_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <numeric>
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

std::size_t check_tables(const std::vector<TableSpec>& tables) {
  if (tables.empty()) throw std::invalid_argument("a loss needs at least one table");
  std::size_t packed_cells = 0;
  for (const auto& spec : tables) {
    if (spec.rows == 0 || spec.columns == 0) throw std::invalid_argument("a table needs at least one cell");
    if (spec.component >= kComponents)
      throw std::invalid_argument("component must be below 4, got " + std::to_string(spec.component));
    packed_cells += static_cast<std::size_t>(spec.rows) * spec.columns;
  }
  return packed_cells;
}

}  // namespace

Layout row_layout(const std::vector<TableSpec>& tables, bool consistent) {
  check_tables(tables);
  return consistent ? Layout::consistent(tables) : Layout::separate(tables);
}

std::size_t row_stride(const Layout& layout) { return layout.cells() + kLanes; }

LossModel::LossModel(const std::int32_t* counts, std::size_t clients, std::vector<TableSpec> tables,
                     const Components& weights, Level level)
    : clients_(clients), level_(level) {
  const std::size_t packed_cells = check_tables(tables);
  if (clients == 0) throw std::invalid_argument("a loss needs at least one client");
  std::vector<std::int64_t> absolute(tables.size(), 0);
  const std::int32_t* from = counts;
  for (std::size_t i = 0; i < clients; ++i)
    for (std::size_t t = 0; t < tables.size(); ++t)
      for (std::size_t left = static_cast<std::size_t>(tables[t].rows) * tables[t].columns; left > 0; --left)
        absolute[t] += std::llabs(static_cast<long long>(*from++));
  for (std::size_t t = 0; t < tables.size(); ++t)
    if (absolute[t] > std::numeric_limits<std::int32_t>::max())
      throw std::invalid_argument("table " + std::to_string(t) + ": absolute counts of all clients sum to " +
                                  std::to_string(absolute[t]) + ", they must stay below 2^31");

  set_tables(tables, tables_agree(tables, counts, clients));
  auto rows = std::make_shared<AlignedVector<std::int32_t>>(clients * stride_, 0);
  for (std::size_t i = 0; i < clients; ++i) layout_.write(counts + i * packed_cells, rows->data() + i * stride_);
  rows_ = std::shared_ptr<const std::int32_t>(rows, rows->data());
  set_weights(weights);
}

LossModel::LossModel(std::shared_ptr<const MappedRows> file, std::size_t clients, std::vector<TableSpec> tables,
                     bool consistent, const Components& weights, Level level)
    : clients_(clients), level_(level), file_(std::move(file)) {
  if (clients == 0) throw std::invalid_argument("a loss needs at least one client");
  set_tables(tables, consistent);
  rows_ = std::shared_ptr<const std::int32_t>(file_, file_->data());
  set_weights(weights);
}

void LossModel::set_tables(const std::vector<TableSpec>& tables, bool consistent) {
  layout_ = row_layout(tables, consistent);
  stride_ = row_stride(layout_);
  for (const auto& spec : tables) component_.push_back(spec.component);
}

void LossModel::set_weights(const Components& weights) {
  check_weights(weights);
  weights_ = weights;
  table_weights_.clear();
  for (auto component : component_) table_weights_.push_back(weights[component]);
  total_weight_ = std::accumulate(table_weights_.begin(), table_weights_.end(), 0.0);
  segment_weights_.clear();
  for (const auto& multiples : layout_.multiples()) {
    double weight = 0.0;
    for (std::size_t c = 0; c < kComponents; ++c) weight += weights[c] * multiples[c];
    segment_weights_.push_back(weight);
  }
  screening_error_ = consistent() ? layout_.screening_error(weights)
                                  : fedsel::screening_error(tables().data(), tables().size(), table_weights_.data());
}

LossModel LossModel::reweighted(const Components& weights) const {
  LossModel model = *this;
  model.set_weights(weights);
  return model;
}

std::vector<double> LossModel::records() const {
  std::vector<double> result(clients_);
  for (std::size_t i = 0; i < clients_; ++i) {
    double records = row(i)[0];
    if (!consistent()) {
      const auto sum = std::accumulate(row(i), row(i) + cells(), std::int64_t{0});
      records = static_cast<double>(sum) / static_cast<double>(tables().size());
    }
    result[i] = std::max(1.0, records);
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
      segment_sums_(model.layout().segments().size()) {
  if (model.consistent()) {
    separate_ = model.layout().separated();
    unpacked_.assign(separate_.cells() + kLanes, 0);
  }
}

const double* Evaluator::information(const std::int32_t* sums) {
  const std::vector<PairTable>* tables = &model_->tables();
  if (model_->consistent()) {
    for (std::size_t t = 0; t < tables->size(); ++t) {
      const PairTable& table = (*tables)[t];
      std::copy_n(sums + table.offset, static_cast<std::size_t>(table.rows) * table.columns,
                  unpacked_.data() + separate_.tables()[t].offset);
    }
    tables = &separate_.tables();
    sums = unpacked_.data();
  }
  kernels_->information(tables->data(), tables->size(), sums, scratch_.data(), work_.data(), information_.data());
  return information_.data();
}

Components Evaluator::components(const std::int32_t* sums) {
  Components result{};
  if (!model_->consistent()) {
    const double* table = information(sums);
    for (std::size_t t = 0; t < model_->tables().size(); ++t) result[model_->component_[t]] += table[t];
    return result;
  }
  const auto& segments = model_->layout().segments();
  const int exponent = kernels_->segment_sums(segments.data(), segments.size(), nullptr, sums, segment_sums_.data());
  const double total = std::max(sums[0], 1), log_total = std::log2(total) - exponent;
  for (auto component : model_->component_) result[component] += log_total;
  for (std::size_t g = 0; g < segments.size(); ++g)
    for (std::size_t c = 0; c < kComponents; ++c)
      result[c] += model_->layout().multiples()[g][c] * segment_sums_[g] / total;
  return result;
}

double Evaluator::loss_of_segments(std::int32_t total, int exponent) const {
  const double n = std::max(total, 1);
  double sum = 0.0;
  for (std::size_t g = 0; g < segment_sums_.size(); ++g) sum += model_->segment_weights_[g] * segment_sums_[g];
  return sum / n + model_->total_weight_ * (std::log2(n) - exponent);
}

double Evaluator::loss(const std::int32_t* sums) {
  if (!model_->consistent()) return model_->loss_of(components(sums));
  const auto& segments = model_->layout().segments();
  const int exponent = kernels_->segment_sums(segments.data(), segments.size(), model_->segment_weights_.data(), sums,
                                              segment_sums_.data());
  return loss_of_segments(sums[0], exponent);
}

double Evaluator::exchange_loss(const std::int32_t* from, std::size_t out, std::size_t in, std::int32_t* to,
                                std::pair<std::size_t, std::size_t> next) {
  if (!model_->consistent()) {
    exchange(from, out, in, to);
    return loss(to);
  }
  const auto& segments = model_->layout().segments();
  const std::int32_t* ahead[] = {model_->row(next.first), model_->row(next.second)};
  const int exponent = kernels_->exchange_sums(segments.data(), segments.size(), model_->segment_weights_.data(), from,
                                               model_->row(out), model_->row(in), to, ahead, segment_sums_.data());
  return loss_of_segments(to[0], exponent);
}

double Evaluator::exchange_screen(const std::int32_t* from, std::size_t out, std::size_t in, std::int32_t* to,
                                  std::pair<std::size_t, std::size_t> next) {
  const auto& segments = model_->layout().segments();
  const std::int32_t* ahead[] = {model_->row(next.first), model_->row(next.second)};
  const auto origin = static_cast<float>(std::log2(std::max(from[0], 1)));
  return kernels_->exchange_screen(segments.data(), segments.size(), model_->segment_weights_.data(),
                                   model_->total_weight_, from, model_->row(out), model_->row(in), to, ahead, origin);
}

void Evaluator::expand_at(const std::int32_t* sums, double loss) {
  logs_.resize(model_->stride());
  halves_.resize(model_->stride());
  kernels_->expansion(model_->cells(), sums, logs_.data(), halves_.data());
  expanded_total_ = sums[0];
  expanded_loss_ = loss;
}

double Evaluator::exchange_bound(std::size_t out, std::size_t in, std::pair<std::size_t, std::size_t> next) {
  const std::int32_t *minus = model_->row(out), *plus = model_->row(in);
  const std::int32_t* ahead[] = {model_->row(next.first), model_->row(next.second)};
  const double before = expanded_total_, change = static_cast<double>(plus[0]) - minus[0], after = before + change;
  if (!(before >= 1.0 && after >= 1.0)) return -std::numeric_limits<double>::infinity();
  const auto& segments = model_->layout().segments();
  double sums[4];
  kernels_->exchange_change(segments.data(), segments.size(), model_->segment_weights_.data(), minus, plus,
                            logs_.data(), halves_.data(), ahead, sums);
  // Inputs are rounded at most twice, products twice, and at most sixteen terms are added in single precision: each
  // term is off by at most 22 * 2^-24 of itself. 1e-9 bits are more than what double precision loses in the rest.
  constexpr double kRounding = 32.0 * 0x1p-24, kInverse = 1.0 / std::numbers::ln2;
  const double weight = model_->total_weight_;
  const double gain = weight * std::log2(after / before) +
                      (sums[0] - change * expanded_loss_ + kInverse * (sums[1] - weight * change)) / after;
  const double error = (kInverse * sums[2] * (1.0 + kRounding) + kInverse * kRounding * sums[3]) / after;
  return expanded_loss_ + gain - error - 1e-9;
}

void Evaluator::lane_losses(const std::int32_t* base, const std::int32_t* lanes, double* losses) {
  const auto& segments = model_->layout().segments();
  if (model_->consistent())
    kernels_->segment_lanes(segments.data(), segments.size(), model_->segment_weights_.data(), model_->total_weight_,
                            base, lanes, losses);
  else
    kernels_->lane_losses(model_->tables().data(), model_->tables().size(), model_->table_weights_.data(), base, lanes,
                          scratch_.data(), losses);
}

void Evaluator::screen(const std::int32_t* base, const std::int32_t* lanes, float origin, float* losses) {
  const auto& segments = model_->layout().segments();
  if (model_->consistent())
    kernels_->segment_screen(segments.data(), segments.size(), model_->segment_weights_.data(), model_->total_weight_,
                             base, lanes, origin, losses);
  else
    kernels_->screen(model_->tables().data(), model_->tables().size(), float_weights_.data(), base, lanes, origin,
                     scratch_.data(), losses);
}

void Evaluator::exchange(const std::int32_t* from, std::size_t out, std::size_t in, std::int32_t* to) {
  kernels_->exchange(model_->cells(), from, model_->row(out), model_->row(in), to);
}

}  // namespace fedsel
