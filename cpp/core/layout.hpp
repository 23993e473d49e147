// How the tables of a client are laid out in a row of cells, so that the kernels can run over it.
//
// Separate: tables one after another, each padded. Every table has margins of its own, which the kernels add up.
//
// Consistent: where all tables of a client agree on the total N and on the margins of the variables they share (exact
// counts, or denoised ones made consistent), the weighted sum of mutual informations is one dot product,
//
//     loss = w_total log2 N + (1/N) sum_c w_c x_c log2 x_c,
//
// over the joint cells, each with its table's weight, and the cells of the one-way margins, each with minus the sum of
// the weights of the tables that hold the variable. Cells of equal weight whatever the weights of the components stand
// together in one padded segment: no table structure is left in the loop, and the component sums come from the same
// segment sums. Rows then hold the margins too, and sums of rows keep agreeing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernel.hpp"

namespace fedsel {

// The federation loss is a weighted sum of four sums of mutual informations.
constexpr std::size_t kComponents = 4;
using Components = std::array<double, kComponents>;

constexpr std::uint32_t kUnnamed = std::numeric_limits<std::uint32_t>::max();

struct TableSpec {
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t component;  // which of the four sums the table belongs to
  // Which variables its rows and columns stand for; tables of unnamed ones are never taken to agree with others.
  std::uint32_t row_variable = kUnnamed;
  std::uint32_t column_variable = kUnnamed;
};

class Layout {
 public:
  static Layout separate(const std::vector<TableSpec>& specs);
  // All variables must be named, and each have one size.
  static Layout consistent(const std::vector<TableSpec>& specs);

  bool consistent() const { return !segments_.empty(); }
  std::size_t cells() const { return cells_; }  // of a row, a multiple of kLanes
  const std::vector<PairTable>& tables() const { return tables_; }

  // Consistent only: the segments, and how many times the sum of x log2 x over each enters each component, times N.
  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<Components>& multiples() const { return multiples_; }

  // Consistent only: largest error of a screened loss under these weights, in bits; see segment_body.hpp.
  double screening_error(const Components& weights) const;

  // The same tables laid out separately.
  Layout separated() const;

  // Writes one client's tables, given one after another without gaps, into a row of zeros.
  void write(const std::int32_t* counts, std::int32_t* row) const;

 private:
  struct Margin {
    std::size_t table;  // where it can be added up
    bool of_rows;
    std::size_t offset;
    std::size_t size;
    Components multiples;
  };
  std::size_t cells_ = 0;
  std::vector<PairTable> tables_;
  std::vector<std::uint32_t> component_;  // of each table
  std::vector<Segment> segments_;
  std::vector<Components> multiples_;
  std::vector<Margin> margins_;
};

// Whether every client's tables are non-negative and agree on the total and on the margins of the variables they share,
// exactly; `counts`: clients x cells, tables one after another without gaps.
bool tables_agree(const std::vector<TableSpec>& specs, const std::int32_t* counts, std::size_t clients);

}  // namespace fedsel
