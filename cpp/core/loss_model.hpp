// A pool of clients ready for evaluation: padded rows of cells, the tables in them, and the weights of the loss.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "aligned.hpp"
#include "layout.hpp"
#include "mapped_rows.hpp"

namespace fedsel {

class LossModel {
 public:
  // `counts`: clients x cells, tables one after another without gaps; copied. Negative counts are allowed (noise), but
  // no table's sum over all clients of absolute counts may reach 2^31: sums of any clients are then exact in 32 bits.
  // Where all tables agree (see layout.hpp), the loss is evaluated as one dot product; the results are the same.
  // Throws std::invalid_argument.
  LossModel(const std::int32_t* counts, std::size_t clients, std::vector<TableSpec> tables, const Components& weights,
            Level level);

  // Rows that were laid out before (see prepare_rows), in a file: clients x prepared_stride values. What is checked of
  // them is the file's size. Throws std::invalid_argument, and RowsLost.
  LossModel(std::shared_ptr<const MappedRows> file, std::size_t clients, std::vector<TableSpec> tables, bool consistent,
            const Components& weights, Level level);

  std::size_t clients() const { return clients_; }
  std::size_t cells() const { return layout_.cells(); }
  bool consistent() const { return layout_.consistent(); }
  const Layout& layout() const { return layout_; }
  const std::vector<PairTable>& tables() const { return layout_.tables(); }  // where each stands in a row
  const std::vector<double>& table_weights() const { return table_weights_; }
  Level level() const { return level_; }
  const std::int32_t* row(std::size_t client) const { return rows_.get() + client * stride_; }

  // Throws RowsLost if the rows are in a file and it is not whole any more: what was computed since the last check is
  // worth nothing then.
  void check_rows() const {
    if (file_) file_->check();
  }

  // Every row, and every vector of sums, has this many values: the cells, then kLanes zeros that loads may reach into.
  std::size_t stride() const { return stride_; }

  // Records of each client: the mean of its table totals, at least 1, since noise can make them negative.
  std::vector<double> records() const;

  double loss_of(const Components& components) const;

  // Largest difference between a screened loss and the exact one, in bits; see Evaluator::screen.
  double screening_error() const { return screening_error_; }

  // The same pool under other weights; shares the rows.
  LossModel reweighted(const Components& weights) const;

 private:
  friend class Evaluator;
  void set_weights(const Components& weights);
  void set_tables(const std::vector<TableSpec>& tables, bool consistent);
  std::size_t clients_, stride_;
  Layout layout_;
  std::vector<std::uint32_t> component_;
  std::vector<double> table_weights_;
  std::vector<double> segment_weights_;
  double total_weight_ = 0.0;     // sum of table_weights_
  double screening_error_ = 0.0;  // bits
  Components weights_;
  Level level_;
  std::shared_ptr<const std::int32_t> rows_;
  std::shared_ptr<const MappedRows> file_;
};

// Which layout rows of these tables have, and their length with the padding. Throws std::invalid_argument.
Layout row_layout(const std::vector<TableSpec>& tables, bool consistent);
std::size_t row_stride(const Layout& layout);

// Evaluates sums of rows; owns the scratch memory, so one per thread.
class Evaluator {
 public:
  explicit Evaluator(const LossModel& model);

  const LossModel& model() const { return *model_; }
  Components components(const std::int32_t* sums);
  double loss(const std::int32_t* sums);
  // Mutual information of every table in bits; valid until the next call.
  const double* information(const std::int32_t* sums);
  // Losses of kLanes federations, cells base[c] + lanes[c * kLanes + l].
  void lane_losses(const std::int32_t* base, const std::int32_t* lanes, double* losses);
  // As lane_losses in single precision, up to the model's screening_error(); see Kernels::screen.
  void screen(const std::int32_t* base, const std::int32_t* lanes, float origin, float* losses);
  // to = from - row(out) + row(in); `to` may be `from`.
  void exchange(const std::int32_t* from, std::size_t out, std::size_t in, std::int32_t* to);
  // The same, and returns the loss of the new sums. `next`: the two clients whose rows are likely to be wanted next.
  double exchange_loss(const std::int32_t* from, std::size_t out, std::size_t in, std::int32_t* to,
                       std::pair<std::size_t, std::size_t> next);
  double exchange_loss(const std::int32_t* from, std::size_t out, std::size_t in, std::int32_t* to) {
    return exchange_loss(from, out, in, to, {out, in});
  }
  // Consistent models only: the same in single precision, up to the model's screening_error(); minus infinity where
  // that cannot be told.
  double exchange_screen(const std::int32_t* from, std::size_t out, std::size_t in, std::int32_t* to,
                         std::pair<std::size_t, std::size_t> next);
  // Consistent models only: takes up a federation's sums and loss for `exchange_bound`, for about the time of an exact
  // evaluation.
  void expand_at(const std::int32_t* sums, double loss);
  // No more than the loss of those sums after an exchange, and less by terms of third order in the change: close where
  // a federation has many members. Minus infinity where nothing can be told.
  double exchange_bound(std::size_t out, std::size_t in, std::pair<std::size_t, std::size_t> next);

 private:
  double loss_of_segments(std::int32_t total, int exponent) const;
  const LossModel* model_;
  const Kernels* kernels_;
  AlignedVector<std::int32_t> scratch_;
  AlignedVector<double> work_, information_;
  std::vector<float> float_weights_;
  AlignedVector<float> logs_, halves_;  // of expand_at, whose total and loss follow
  std::int32_t expanded_total_ = 0;
  double expanded_loss_ = 0.0;
  std::vector<double> segment_sums_;
  Layout separate_;                       // consistent models only: where the kernel of single tables wants them
  AlignedVector<std::int32_t> unpacked_;  // and the row it reads
};

}  // namespace fedsel
