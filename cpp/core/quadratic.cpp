#include "quadratic.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <string>

#include "parallel.hpp"

namespace fedsel {
namespace {

struct Proportions {
  std::vector<double> cells, rows, columns;
  double total = 0.0;

  void set(const PairTable& table, const std::int32_t* counts, bool clamp) {
    cells.assign(counts, counts + static_cast<std::size_t>(table.rows) * table.columns);
    rows.assign(table.rows, 0.0);
    columns.assign(table.columns, 0.0);
    for (std::size_t i = 0; i < table.rows; ++i)
      for (std::size_t j = 0; j < table.columns; ++j) {
        double& cell = cells[i * table.columns + j];
        if (clamp) cell = std::max(cell, 0.0);
        rows[i] += cell;
        columns[j] += cell;
      }
    total = std::accumulate(rows.begin(), rows.end(), 0.0);
    if (total <= 0.0) return;
    for (auto* values : {&cells, &rows, &columns})
      for (double& value : *values) value /= total;
  }
};

// Writes sqrt(weight / q) (p - q), so that couplings are sums of products.
void add_differences(const std::vector<double>& p, const std::vector<double>& q, double weight, double*& to) {
  for (std::size_t c = 0; c < p.size(); ++c) *to++ = q[c] > 0.0 ? std::sqrt(weight / q[c]) * (p[c] - q[c]) : 0.0;
}

double dot(const double* a, const double* b, std::size_t count) {
  double sums[8] = {};
  std::size_t c = 0;
  for (; c + 8 <= count; c += 8)
    for (std::size_t l = 0; l < 8; ++l) sums[l] += a[c + l] * b[c + l];
  double sum = ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
  for (; c < count; ++c) sum += a[c] * b[c];
  return sum;
}

}  // namespace

QuadraticModel::QuadraticModel(const LossModel& model, const Members& reference, std::size_t threads, Control& control)
    : records_(model.records()), scores_(model.clients(), 0.0) {
  const std::size_t n = clients();
  if (n > kMaxClients)
    throw std::invalid_argument("the second-order model takes at most " + std::to_string(kMaxClients) +
                                " clients, got " + std::to_string(n));
  couplings_.assign(n * n, 0.0);

  // Differences d_i, scaled: those that enter the couplings with a plus sign first, those with a minus sign behind.
  std::size_t plus = 0, minus = 0;
  for (std::size_t t = 0; t < model.tables().size(); ++t) {
    const PairTable& table = model.tables()[t];
    const std::size_t joint = static_cast<std::size_t>(table.rows) * table.columns,
                      margins = table.rows + table.columns;
    if (model.table_weights()[t] == 0.0) continue;
    plus += model.table_weights()[t] > 0.0 ? joint : margins;
    minus += model.table_weights()[t] > 0.0 ? margins : joint;
  }
  const auto sums = sum_rows(model, reference);
  std::vector<double> differences(n * (plus + minus));
  parallel_for(n, threads, [&](std::size_t i, std::size_t) {
    if (control.stopped()) return;
    Proportions q, p;
    double *up = differences.data() + i * (plus + minus), *down = up + plus;
    for (std::size_t t = 0; t < model.tables().size(); ++t) {
      const PairTable& table = model.tables()[t];
      const double weight = model.table_weights()[t], size = std::abs(weight) / std::numbers::ln2;
      if (weight == 0.0) continue;
      q.set(table, sums.data() + table.offset, true);
      p.set(table, model.row(i) + table.offset, false);
      if (p.total <= 0.0) p = q;  // nothing known about this client: as the reference
      for (std::size_t r = 0; r < table.rows; ++r)
        for (std::size_t c = 0; c < table.columns; ++c) {
          const double cell = q.cells[r * table.columns + c];
          if (cell > 0.0)
            scores_[i] +=
                records_[i] * weight * p.cells[r * table.columns + c] * std::log2(cell / (q.rows[r] * q.columns[c]));
        }
      add_differences(p.cells, q.cells, size, weight > 0.0 ? up : down);
      add_differences(p.rows, q.rows, size, weight > 0.0 ? down : up);
      add_differences(p.columns, q.columns, size, weight > 0.0 ? down : up);
    }
  });
  parallel_for(n, threads, [&](std::size_t i, std::size_t) {
    if (control.stopped()) return;
    const double* a = differences.data() + i * (plus + minus);
    for (std::size_t j = 0; j <= i; ++j) {
      const double* b = differences.data() + j * (plus + minus);
      const double value = records_[i] * records_[j] * (dot(a, b, plus) - dot(a + plus, b + plus, minus));
      couplings_[i * n + j] = couplings_[j * n + i] = value;
    }
  });
  ready_ = !control.stopped();
}

double QuadraticModel::loss(const Members& members) const {
  double records = 0.0, score = 0.0, form = 0.0;
  for (auto i : members) {
    records += records_[i];
    score += scores_[i];
    for (auto j : members) form += couplings(i)[j];
  }
  return (score + 0.5 * form / records) / records;
}

QuadraticState::QuadraticState(const QuadraticModel& model, const Members& members)
    : model_(&model), pull_(model.clients(), 0.0) {
  for (auto i : members) {
    records_ += model.records(i);
    score_ += model.score(i);
    for (std::size_t j = 0; j < pull_.size(); ++j) pull_[j] += model.couplings(i)[j];
  }
  for (auto i : members) form_ += pull_[i];
}

void QuadraticState::swap(std::uint32_t out, std::uint32_t in) {
  const double* leaving = model_->couplings(out);
  const double* entering = model_->couplings(in);
  form_ += -2.0 * (pull_[out] - pull_[in] + leaving[in]) + leaving[out] + entering[in];
  records_ += model_->records(in) - model_->records(out);
  score_ += model_->score(in) - model_->score(out);
  for (std::size_t j = 0; j < pull_.size(); ++j) pull_[j] += entering[j] - leaving[j];
}

}  // namespace fedsel
