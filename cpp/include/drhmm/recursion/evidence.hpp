// The evidence of one sequence, and the steps of the chain between its frames.
#pragma once

#include <cstdint>

#include "drhmm/types.hpp"

namespace drhmm {

struct EvidenceRows {
  ConstRows log_ratios;              // (T, S)
  const std::int64_t* dt = nullptr;  // (T) steps since the frame before, or since the start; null: all 1

  EvidenceRows(const ConstRows& rows, const std::int64_t* steps = nullptr) : log_ratios(rows), dt(steps) {}

  Index n_frames() const { return log_ratios.rows(); }
  const double* row(Index t) const { return log_ratios.data() + t * log_ratios.cols(); }
  // Steps of the chain that lead to frame t; the first frame of a sequence is where the chain starts.
  std::int64_t steps(Index t) const { return (dt == nullptr ? 1 : dt[t]) - (t == 0 ? 1 : 0); }
};

}  // namespace drhmm
