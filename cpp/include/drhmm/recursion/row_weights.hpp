// The evidence of frames as weights, row by row.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "drhmm/exponential.hpp"
#include "drhmm/lanes.hpp"
#include "drhmm/recursion/level.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// Rows of n_states numbers, padded to P of them; exact says that nothing is padded.
template <int P, bool exact>
class PaddedRows {
 public:
  explicit PaddedRows(Index n_states) : n_states_(n_states) {}

  Index n_states() const { return exact ? P : n_states_; }

  // weights (count, P) <- w_i(y_t) 2^kWeightShift relative to the likeliest state of each frame; missing frames have
  // 2^kWeightShift everywhere.
  // What is padded becomes 2^kWeightShift. False if a row of log_ratios is neither ordinary evidence nor missing.
  bool weigh(const double* log_ratios, Index count, double* weights) const {
    for (Index k = 0; k < count; ++k) {
      const double* row = log_ratios + k * n_states();
      double* target = weights + k * P;
      if constexpr (!exact) std::fill(target + n_states(), target + P, 0.0);
      const auto [pivot, sum] = largest_and_sum(row);
      // Ordinary: the largest entry is finite and none is NaN (-inf excludes a state).
      if (!(pivot - pivot == 0) || sum != sum) {
        for (Index i = 0; i < n_states(); ++i) {
          if (!std::isnan(row[i])) return false;
        }
        std::fill(target, target + n_states(), 0.0);
        continue;
      }
      for (Index i = 0; i < n_states(); ++i) target[i] = row[i] - pivot;
    }
    exponentials<kWeightShift>(weights, count * P);
    return true;
  }

 private:
  std::pair<double, double> largest_and_sum(const double* row) const {
    double largest = row[0], sum = row[0];
    Index i = 1;
    if constexpr (exact && P >= 8 && P % kLanes<double> == 0) {
      Lanes<double> most = load(row), total = most;
      for (int r = kLanes<double>; r < P; r += kLanes<double>) {
        const Lanes<double> entries = load(row + r);
        most = entries > most ? entries : most;
        total += entries;
      }
      alignas(64) double mosts[kLanes<double>], totals[kLanes<double>];
      store<double>(most, mosts);
      store<double>(total, totals);
      largest = mosts[0], sum = totals[0];
      for (; i < kLanes<double>; ++i) {
        largest = mosts[i] > largest ? mosts[i] : largest;
        sum += totals[i];
      }
      return {largest, sum};
    }
    for (; i < n_states(); ++i) {
      largest = row[i] > largest ? row[i] : largest;
      sum += row[i];
    }
    return {largest, sum};
  }

  Index n_states_;
};

}  // namespace drhmm
