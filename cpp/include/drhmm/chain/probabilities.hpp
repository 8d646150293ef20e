// Checks and normalises probabilities.
#pragma once

#include "drhmm/types.hpp"

namespace drhmm {

// Copies rows of probabilities divided by their sums. Rows whose sum is 1 up to rounding stay the same to the last
// digit. Returns false if a number is negative or NaN, or if a sum differs from 1 by more than the tolerance.
bool normalize(const ConstRows& values, double tolerance, Rows normalized);

}  // namespace drhmm
