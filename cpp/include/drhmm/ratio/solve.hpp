// Theta = (G + rho I)^-1 H: one Cholesky factor for every class, and for every iteration of EM.
#pragma once

#include <Eigen/Cholesky>
#include <stdexcept>

#include "drhmm/types.hpp"

namespace drhmm {

class RegularizedGram {
 public:
  // gram (B, B): its lower triangle is read.
  RegularizedGram(const Eigen::Ref<const Matrix>& gram, double rho) {
    Matrix regularized = gram;
    regularized.diagonal().array() += rho;
    factor_.compute(regularized);
    if (factor_.info() != Eigen::Success) {
      throw std::invalid_argument("the Gram matrix plus rho is not positive definite: choose a larger rho");
    }
  }

  Index n_centers() const { return factor_.rows(); }

  Matrix solve(const Eigen::Ref<const Matrix>& moment) const { return factor_.solve(moment); }

 private:
  Eigen::LLT<Matrix, Eigen::Lower> factor_;
};

}  // namespace drhmm
