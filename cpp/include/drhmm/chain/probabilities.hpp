// Whether numbers are probabilities.
#pragma once

#include "drhmm/types.hpp"

namespace drhmm {

// Copies rows of probabilities, each divided by its sum, unless that is 1 up to rounding: what is normalised already
// stays as it is to the last digit. False if a number is negative or NaN, or a sum further from 1 than the tolerance.
bool normalize(const ConstRows& values, double tolerance, Rows normalized);

}  // namespace drhmm
