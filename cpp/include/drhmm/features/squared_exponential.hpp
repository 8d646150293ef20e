// Squared exponential features phi_b(y) = exp(-|y - c_b|^2 / (2 sigma^2)).
#pragma once

#include "drhmm/exponential.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

class SquaredExponential {
 public:
  // centers (B, D). Subtracts the mean of the centres first, so that data far from zero keep their digits.
  SquaredExponential(const ConstRows& centers, double sigma)
      : gamma_(0.5 / (sigma * sigma)), origin_(centers.colwise().mean()) {
    const RowMatrix shifted = centers.rowwise() - origin_;
    projection_ = 2 * gamma_ * shifted.transpose();
    offset_ = gamma_ * shifted.rowwise().squaredNorm().transpose();
  }

  Index n_centers() const { return projection_.cols(); }
  Index frame_size() const { return projection_.rows(); }

  // features (n, B) <- phi of frames (n, D), from -|y - c|^2 gamma = 2 gamma y.c - gamma |c|^2 - gamma |y|^2.
  template <class Frames>
  void evaluate(const Eigen::MatrixBase<Frames>& frames, RowMatrix& features) const {
    const RowMatrix shifted = frames.rowwise() - origin_;
    const Vector norms = gamma_ * shifted.rowwise().squaredNorm();
    features.noalias() = shifted * projection_;
    features.rowwise() -= offset_;
    features.colwise() -= norms;
    // Rounding can make a distance negative. A frame beyond the range of double has distance infinity and features of
    // exactly zero: whether every class estimates 0 must not depend on the last digits of an underflow.
    features = features.cwiseMin(0.0);
    exponentials(features.data(), features.size());
  }

 private:
  double gamma_;
  Eigen::RowVectorXd origin_;  // (D)
  RowMatrix projection_;       // (D, B)
  Eigen::RowVectorXd offset_;  // (B)
};

}  // namespace drhmm
