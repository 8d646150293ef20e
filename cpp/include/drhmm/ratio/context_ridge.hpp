// Least squares on the context of a time step: estimates of p(x = i | the past).
#pragma once

#include <utility>

#include "drhmm/features/context.hpp"

namespace drhmm {

// q_i = intercept_i + sum_f coefficient_fi clip((feature_f - center_f) / spread_f, -10, 10)
class ContextRidge {
 public:
  // center, spread (F), intercept (S), coefficients (F, S)
  ContextRidge(Vector center, const Vector& spread, Vector intercept, const ConstRows& coefficients)
      : center_(std::move(center)),
        inverse_spread_(spread.cwiseInverse()),
        intercept_(std::move(intercept)),
        coefficients_(coefficients.transpose()) {}

  Index work_per_frame() const { return coefficients_.size(); }

  // out (S) <- the estimates of one time step from its features (F).
  void estimates_of_one(const double* features, double* out) const {
    constexpr double kMost = 10;
    const Eigen::Map<const Vector> given(features, center_.size());
    const Vector standardized = ((given - center_).array() * inverse_spread_.array()).max(-kMost).min(kMost);
    Eigen::Map<Vector>(out, intercept_.size()) = intercept_;
    for (Index i = 0; i < intercept_.size(); ++i) out[i] += coefficients_.row(i).dot(standardized);
  }

 private:
  Vector center_, inverse_spread_;  // (F)
  Vector intercept_;                // (S)
  RowMatrix coefficients_;          // (S, F)
};

}  // namespace drhmm
