// Additive estimates of p(x = i | y): each column has a slope within a range, and one step per bin.
#pragma once

#include <algorithm>

#include "drhmm/system/lanes.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// q_i(y) = intercept_i + sum_j slope_ji (clip(y_j, low_j, high_j) - low_j) + step_jbi, where b is the number of
// edges of column j below y_j.
class AdditiveTables {
 public:
  static constexpr Index kEdges = 9;  // deciles; a column with fewer distinct ones repeats the last
  static constexpr Index kBins = kEdges + 1;

  // low, high (D), edges (D, kEdges) in ascending order, intercept (S), slopes (D, S), steps (D * kBins, S)
  AdditiveTables(const Vector& low, const Vector& high, const ConstRows& edges, const Vector& intercept,
                 const RowMatrix& slopes, const RowMatrix& steps)
      : n_columns_(low.size()),
        n_states_(intercept.size()),
        padded_(padded(n_columns_)),
        bounds_(RowMatrix::Zero(kEdges + 2, padded_)),
        intercept_(Vector::Zero(padded(n_states_))),
        slopes_(RowMatrix::Zero(slopes.rows(), padded(n_states_))),
        steps_(RowMatrix::Zero(steps.rows(), padded(n_states_))) {
    bounds_.topLeftCorner(kEdges, n_columns_) = edges.transpose();
    bounds_.row(kEdges).head(n_columns_) = low;
    bounds_.row(kEdges + 1).head(n_columns_) = high;
    intercept_.head(n_states_) = intercept;
    slopes_.leftCols(n_states_) = slopes;
    steps_.leftCols(n_states_) = steps;
  }

  Index work_per_frame() const { return n_columns_ * (kEdges + 2 * n_states_); }
  Index scratch_size() const { return 2 * padded_; }

  // Finds the bins of several columns at a time.
  void estimates(const double* frame,  // (D)
                 double* scratch,      // (scratch_size)
                 double* out) const {  // (S)
    using Value = Lanes<double>;
    double *const values = scratch, *const bins = scratch + padded_;
    std::copy_n(frame, n_columns_, values);
    std::fill(values + n_columns_, bins, 0.0);
    for (Index j = 0; j < padded_; j += kLanes<double>) {
      const double* const bounds = bounds_.data() + j;
      const Value y = load(values + j), none{}, one = all(1.0);
      Value below{};
      for (Index e = 0; e < kEdges; ++e) below += load(bounds + e * padded_) < y ? one : none;
      const Value low = load(bounds + kEdges * padded_), high = load(bounds + (kEdges + 1) * padded_);
      const Value above = y < low ? low : y;
      store<double>((high < above ? high : above) - low, values + j);
      store<double>(below, bins + j);
    }
    for (Index i = 0; i < n_states_; i += kLanes<double>) {
      Value sums[2] = {load(intercept_.data() + i), Value{}};  // two sums hide the latency of additions
      for (Index j = 0; j < n_columns_; ++j) {
        const Index row = j * kBins + static_cast<Index>(bins[j]);
        sums[j % 2] += load(steps_.data() + row * intercept_.size() + i) +
                       load(slopes_.data() + j * intercept_.size() + i) * values[j];
      }
      const Value sum = sums[0] + sums[1];
      for (Index k = i; k < std::min(i + kLanes<double>, n_states_); ++k) out[k] = lane_of(sum, k - i);
    }
  }

 private:
  static Index padded(Index n) { return (n + kLanes<double> - 1) / kLanes<double> * kLanes<double>; }

  Index n_columns_, n_states_, padded_;
  RowMatrix bounds_;          // (kEdges + 2, D): edges, low and high; all three are padded to whole registers
  Vector intercept_;          // (S)
  RowMatrix slopes_, steps_;  // (D, S), (D * kBins, S)
};

}  // namespace drhmm
