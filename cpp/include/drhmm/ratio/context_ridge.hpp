// Least squares on the context of a time step: estimates of p(x = i | the past).
#pragma once

#include <algorithm>
#include <utility>

#include "drhmm/features/context.hpp"

namespace drhmm {

// q_i = intercept_i + sum_f coefficient_fi clip((feature_f - center_f) / spread_f, -10, 10)
class ContextRidge {
 public:
  // center, spread (F), intercept (S), coefficients (F, S)
  ContextRidge(Vector center, const Vector& spread, Vector intercept, RowMatrix coefficients)
      : center_(std::move(center)),
        inverse_spread_(spread.cwiseInverse()),
        intercept_(std::move(intercept)),
        coefficients_(std::move(coefficients)) {}

  Index work_per_frame() const { return coefficients_.size(); }

  // out (S) <- the estimates of one time step from its features (F).
  void estimates_of_one(const double* features, double* out) const {
    constexpr double kMost = 10;
    const Index s = intercept_.size();
    std::copy_n(intercept_.data(), s, out);
    const double* row = coefficients_.data();
    for (Index f = 0; f < center_.size(); ++f, row += s) {
      const double value = std::min(std::max((features[f] - center_[f]) * inverse_spread_[f], -kMost), kMost);
      for (Index i = 0; i < s; ++i) out[i] += value * row[i];
    }
  }

 private:
  Vector center_, inverse_spread_;  // (F)
  Vector intercept_;                // (S)
  RowMatrix coefficients_;          // (F, S)
};

}  // namespace drhmm
