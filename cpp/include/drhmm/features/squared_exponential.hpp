// Squared exponential features phi_b(y) = exp(-|y - c_b|^2 / (2 sigma^2)).
#pragma once

#include "drhmm/types.hpp"

namespace drhmm {

class SquaredExponential {
 public:
  // Subtracts the mean of the centres first, so that data far from zero keep their digits.
  SquaredExponential(const ConstRows& centers /* (B, D) */, double sigma);

  Index n_centers() const { return projection_.cols(); }
  Index frame_size() const { return projection_.rows(); }

  // features (n, B) <- phi of frames (n, D), from -|y - c|^2 gamma = 2 gamma y.c - gamma |c|^2 - gamma |y|^2.
  void evaluate(const Eigen::Ref<const RowMatrix>& frames, RowMatrix& features) const;

 private:
  double gamma_;
  Eigen::RowVectorXd origin_;  // (D)
  RowMatrix projection_;       // (D, B)
  Eigen::RowVectorXd offset_;  // (B)
};

}  // namespace drhmm
