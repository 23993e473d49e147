#include "federation.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace fedsel {

Federation::Federation(const LossModel& model, Members members)
    : members_(std::move(members)), inside_(model.clients(), 0) {
  for (auto client : members_) {
    if (client >= model.clients())
      throw std::invalid_argument("member must be between 0 and " + std::to_string(model.clients() - 1) + ", got " +
                                  std::to_string(client));
    if (inside_[client]++ != 0) throw std::invalid_argument("member " + std::to_string(client) + " is given twice");
  }
  sums_ = sum_rows(model, members_);
}

void Federation::swap(Evaluator& evaluator, std::size_t position, std::uint32_t in) {
  evaluator.exchange(sums_.data(), members_[position], in, sums_.data());
  inside_[members_[position]] = 0;
  inside_[in] = 1;
  members_[position] = in;
}

void Federation::swap(std::size_t position, std::uint32_t in, AlignedVector<std::int32_t>& sums) {
  std::swap(sums_, sums);
  inside_[members_[position]] = 0;
  inside_[in] = 1;
  members_[position] = in;
}

AlignedVector<std::int32_t> sum_rows(const LossModel& model, const Members& members) {
  AlignedVector<std::int32_t> sums(model.stride(), 0);
  for (auto client : members) {
    const std::int32_t* row = model.row(client);
    for (std::size_t c = 0; c < model.cells(); ++c) sums[c] += row[c];
  }
  return sums;
}

}  // namespace fedsel
