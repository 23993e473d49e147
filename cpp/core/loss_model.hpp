// A pool of clients ready for evaluation: padded rows of cells, the tables in them, and the weights of the loss.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "aligned.hpp"
#include "kernel.hpp"

namespace fedsel {

// The federation loss is a weighted sum of four sums of mutual informations.
constexpr std::size_t kComponents = 4;
using Components = std::array<double, kComponents>;

struct TableSpec {
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t component;  // which of the four sums the table belongs to
};

class LossModel {
 public:
  // `counts`: clients x cells, tables one after another without gaps; copied. Negative counts are allowed (noise), but
  // no table's sum over all clients of absolute counts may reach 2^31: sums of any clients are then exact in 32 bits.
  // Throws std::invalid_argument.
  LossModel(const std::int32_t* counts, std::size_t clients, std::vector<TableSpec> tables, const Components& weights,
            Level level);

  std::size_t clients() const { return clients_; }
  std::size_t cells() const { return cells_; }  // padded
  const std::vector<PairTable>& tables() const { return tables_; }
  const std::vector<double>& table_weights() const { return table_weights_; }
  Level level() const { return level_; }
  const std::int32_t* row(std::size_t client) const { return rows_->data() + client * stride_; }

  // Every row, and every vector of sums, has this many values: the cells, then kLanes zeros that loads may reach into.
  std::size_t stride() const { return stride_; }

  // Records of each client: the mean of its table totals, at least 1, since noise can make them negative.
  std::vector<double> records() const;

  double loss_of(const Components& components) const;

  // The same pool under other weights; shares the rows.
  LossModel reweighted(const Components& weights) const;

 private:
  friend class Evaluator;
  std::size_t clients_, cells_ = 0, stride_;
  std::vector<PairTable> tables_;
  std::vector<std::uint32_t> component_;
  std::vector<double> table_weights_;
  Components weights_;
  Level level_;
  std::shared_ptr<const AlignedVector<std::int32_t>> rows_;
};

// Evaluates sums of rows; owns the scratch memory, so one per thread.
class Evaluator {
 public:
  explicit Evaluator(const LossModel& model);

  const LossModel& model() const { return *model_; }
  Components components(const std::int32_t* sums);
  double loss(const std::int32_t* sums) { return model_->loss_of(components(sums)); }
  // Mutual information of every table in bits; valid until the next call.
  const double* information(const std::int32_t* sums);
  // Losses of kLanes federations, cells base[c] + lanes[c * kLanes + l].
  void lane_losses(const std::int32_t* base, const std::int32_t* lanes, double* losses);
  // As lane_losses, up to screening_error() bits; see Kernels::screen.
  void screen(const std::int32_t* base, const std::int32_t* lanes, float origin, float* losses);
  double screening_error() const { return screening_error_; }
  // to = from - row(out) + row(in); `to` may be `from`.
  void exchange(const std::int32_t* from, std::size_t out, std::size_t in, std::int32_t* to);

 private:
  const LossModel* model_;
  const Kernels* kernels_;
  AlignedVector<std::int32_t> scratch_;
  AlignedVector<double> work_, information_;
  std::vector<float> float_weights_;
  double screening_error_;
};

}  // namespace fedsel
