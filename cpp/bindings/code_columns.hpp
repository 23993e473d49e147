// Columns of category codes, borrowed from numpy.
#pragma once

#include <pybind11/numpy.h>

#include <vector>

#include "count.hpp"

namespace fedsel_bindings {

// Throws std::invalid_argument unless every column is one-dimensional, of the same length as the first, and of uint8,
// uint16 or int32 in this machine's byte order. The arrays must outlive the result.
std::vector<fedsel::CodeColumn> code_columns(const std::vector<pybind11::array>& arrays);

}  // namespace fedsel_bindings
