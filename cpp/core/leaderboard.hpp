// The best few distinct federations seen, in an order that does not depend on when each was seen.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "federation.hpp"

namespace fedsel {

struct Candidate {
  double loss;
  Members members;  // increasing

  bool operator<(const Candidate& other) const {
    return loss != other.loss ? loss < other.loss : members < other.members;
  }
};

class Leaderboard {
 public:
  explicit Leaderboard(std::size_t capacity) : capacity_(capacity) {}

  std::size_t capacity() const { return capacity_; }

  // Anything above this loss would not enter.
  double threshold() const {
    return entries_.size() < capacity_ ? std::numeric_limits<double>::infinity() : entries_.back().loss;
  }

  void add(double loss, Members members) {
    if (!(loss <= threshold())) return;
    std::sort(members.begin(), members.end());
    for (const auto& entry : entries_)
      if (entry.members == members) return;
    Candidate candidate{loss, std::move(members)};
    entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), candidate), std::move(candidate));
    if (entries_.size() > capacity_) entries_.pop_back();
  }

  void merge(const Leaderboard& other) {
    for (const auto& entry : other.entries_) add(entry.loss, entry.members);
  }

  const std::vector<Candidate>& entries() const { return entries_; }

 private:
  std::size_t capacity_;
  std::vector<Candidate> entries_;
};

}  // namespace fedsel
