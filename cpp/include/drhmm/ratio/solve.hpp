// Theta = (G + rho I)^-1 H. One Cholesky factor serves all classes and all iterations of EM; one tridiagonal reduction
// serves all rho. Throws std::invalid_argument if G + rho I is not positive definite.
#pragma once

#include <Eigen/Cholesky>
#include <vector>

#include "drhmm/types.hpp"

namespace drhmm {

class RegularizedGram {
 public:
  // gram (B, B): its lower triangle is read.
  RegularizedGram(const Eigen::Ref<const Matrix>& gram, double rho);

  Index n_centers() const { return factor_.rows(); }

  Matrix solve(const Eigen::Ref<const Matrix>& moment /* (B, S) */) const;

 private:
  Eigen::LLT<Matrix, Eigen::Lower> factor_;
};

// G = Q T Q^T with T tridiagonal: G + rho I = Q (T + rho I) Q^T, so each rho costs only its right-hand sides. Q is a
// product of reflections H_k = I - h_k v_k v_k^T.
class ReducedGram {
 public:
  // gram (B, B): its lower triangle is read; moment (B, S).
  ReducedGram(const Matrix& gram, const Matrix& moment);

  // (B, S * rhos): Theta of the first rho, of the second, ...
  Matrix solve(const std::vector<double>& rhos) const;

 private:
  void reduce();
  void reflect(Index k, Matrix& values) const;

  Matrix packed_;    // (B, B): below the diagonal of column k, v_k
  Vector scales_;    // (B - 1): h_k
  Vector diagonal_;  // (B) of T
  Vector below_;     // (B - 1) of T
  Matrix moment_;    // Q^T H
};

}  // namespace drhmm
