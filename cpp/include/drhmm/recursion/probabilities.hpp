// Whether numbers are probabilities.
#pragma once

#include <cmath>
#include <limits>

#include "drhmm/types.hpp"

namespace drhmm {

// Copies rows of probabilities, each divided by its sum, unless that is 1 up to rounding: what is normalised already
// stays as it is to the last digit. False if a number is negative or NaN, or a sum further from 1 than the tolerance.
inline bool normalize(const ConstRows& values, double tolerance, Rows normalized) {
  const double rounding = 4 * std::numeric_limits<double>::epsilon() * static_cast<double>(values.cols());
  for (Index i = 0; i < values.rows(); ++i) {
    double sum = 0;
    for (Index j = 0; j < values.cols(); ++j) {
      const double value = values(i, j);
      if (!(value >= 0)) return false;
      sum += value;
    }
    if (!(std::abs(sum - 1) <= tolerance)) return false;
    const double divisor = std::abs(sum - 1) <= rounding ? 1 : sum;
    for (Index j = 0; j < values.cols(); ++j) normalized(i, j) = values(i, j) / divisor;
  }
  return true;
}

}  // namespace drhmm
