// The loss of smoothing against known states, and its derivatives by evidence and chain.
#pragma once

#include <cstdint>
#include <vector>

#include "drhmm/types.hpp"

namespace drhmm {

// -sum_t log gamma_t(x_t) over frames of known state, and its derivatives; evidence and codes hold the sequences one
// after the other. The order of all sums is fixed, so that threads change nothing.
struct SmoothingGradient {
  double loss = 0;
  RowMatrix by_transitions;  // (S, S) dL / d log P
  Vector by_start;           // (S) dL / d log start

  static SmoothingGradient of(const ConstRows& evidence,  // (T, S), rows of NaN where a frame is missing
                              const std::int64_t* codes,  // (T), negative where a frame is not judged
                              const std::vector<Index>& lengths,
                              const ConstRows& transitions,           // (S, S)
                              const Eigen::Map<const Vector>& start,  // (S)
                              int n_threads,
                              double* by_evidence);  // (T, S) <- dL / d evidence; null: the loss alone
};

}  // namespace drhmm
