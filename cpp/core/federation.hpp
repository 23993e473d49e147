// A federation: its members, and the sums of their rows kept up to date under swaps.
#pragma once

#include <cstdint>
#include <vector>

#include "loss_model.hpp"

namespace fedsel {

using Members = std::vector<std::uint32_t>;

class Federation {
 public:
  // Throws std::invalid_argument if a member repeats or is out of range.
  Federation(const LossModel& model, Members members);

  const Members& members() const { return members_; }
  bool contains(std::uint32_t client) const { return inside_[client] != 0; }
  const std::int32_t* sums() const { return sums_.data(); }
  std::size_t size() const { return members_.size(); }

  // Replaces the member at `position` by the outsider `in`. `sums`, if given, are the sums after the swap.
  void swap(Evaluator& evaluator, std::size_t position, std::uint32_t in);
  void swap(std::size_t position, std::uint32_t in, AlignedVector<std::int32_t>& sums);

 private:
  Members members_;
  std::vector<std::uint8_t> inside_;
  AlignedVector<std::int32_t> sums_;
};

// Sums of the rows of some clients, (stride,).
AlignedVector<std::int32_t> sum_rows(const LossModel& model, const Members& members);

}  // namespace fedsel
