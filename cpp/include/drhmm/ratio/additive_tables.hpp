// Additive estimates of p(x = i | y): each column has a slope within a range, and one step per bin.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "drhmm/types.hpp"

namespace drhmm {

// q_i(y) = intercept_i + sum_j slope_ji (clip(y_j, low_j, high_j) - low_j) + step_jbi, where b is the number of
// edges of column j below y_j.
class AdditiveTables {
 public:
  static constexpr Index kEdges = 9;  // deciles; a column with fewer distinct ones repeats the last
  static constexpr Index kBins = kEdges + 1;

  // low, high (D), edges (D, kEdges) in ascending order, intercept (S), slopes (D, S), steps (D * kBins, S)
  AdditiveTables(Vector low, Vector high, const ConstRows& edges, Vector intercept, RowMatrix slopes, RowMatrix steps)
      : low_(std::move(low)),
        high_(std::move(high)),
        edges_(static_cast<std::size_t>(edges.rows() * kPadded), std::numeric_limits<double>::infinity()),
        intercept_(std::move(intercept)),
        slopes_(std::move(slopes)),
        steps_(std::move(steps)) {
    for (Index j = 0; j < edges.rows(); ++j) {
      std::copy_n(edges.row(j).data(), kEdges, edges_.data() + j * kPadded);
    }
  }

  // The approximate number of multiplications per frame.
  Index work_per_frame() const { return low_.size() * (kPadded + 2 * n_states()); }

  // out (n, S) <- estimates of frames (n, D), column by column, so that registers find the bins of several values.
  void estimates(const RowMatrix& frames, RowMatrix& out) const {
    const Index n = frames.rows(), s = n_states();
    std::vector<double> values(static_cast<std::size_t>(n)), below(values.size());
    out.rowwise() = intercept_.transpose();
    for (Index j = 0; j < low_.size(); ++j) {
      for (Index k = 0; k < n; ++k) values[static_cast<std::size_t>(k)] = frames(k, j);
      std::fill(below.begin(), below.end(), 0.0);
      for (Index e = 0; e < kEdges; ++e) {
        const double edge = edges_[static_cast<std::size_t>(j * kPadded + e)];
        for (std::size_t k = 0; k < values.size(); ++k) below[k] += edge < values[k] ? 1.0 : 0.0;
      }
      const double* const slope = slopes_.data() + j * s;
      const double* const steps = steps_.data() + j * kBins * s;
      double* target = out.data();
      for (std::size_t k = 0; k < values.size(); ++k, target += s) {
        const double value = std::min(std::max(values[k], low_[j]), high_[j]) - low_[j];
        const double* const step = steps + static_cast<Index>(below[k]) * s;
        for (Index i = 0; i < s; ++i) target[i] += step[i] + slope[i] * value;
      }
    }
  }

  // out (S) <- estimates of one frame (D).
  void estimates_of_one(const double* frame, double* out) const {
    const Index s = n_states();
    std::copy_n(intercept_.data(), s, out);
    for (Index j = 0; j < low_.size(); ++j) {
      const double value = std::min(std::max(frame[j], low_[j]), high_[j]) - low_[j];
      const double* const slope = slopes_.data() + j * s;
      const double* const step = steps_.data() + (j * kBins + bin(j, frame[j])) * s;
      for (Index i = 0; i < s; ++i) out[i] += step[i] + slope[i] * value;
    }
  }

 private:
  static constexpr Index kPadded = 12;  // edges of one column, padded to whole registers

  Index n_states() const { return intercept_.size(); }

  Index bin(Index j, double value) const {
    const double* const edges = edges_.data() + j * kPadded;
    int below = 0;
    for (Index k = 0; k < kPadded; ++k) below += edges[k] < value ? 1 : 0;
    return below;
  }

  Vector low_, high_;          // (D)
  std::vector<double> edges_;  // (D, kPadded)
  Vector intercept_;           // (S)
  RowMatrix slopes_;           // (D, S)
  RowMatrix steps_;            // (D * kBins, S)
};

}  // namespace drhmm
