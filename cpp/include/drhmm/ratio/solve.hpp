// Theta = (G + rho I)^-1 H. One Cholesky factor serves all classes and all iterations of EM; one tridiagonal reduction
// serves all rho.
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Householder>
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "drhmm/interruption.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

[[noreturn]] inline void refuse_gram() {
  throw std::invalid_argument("the Gram matrix plus rho is not positive definite: choose a larger rho");
}

class RegularizedGram {
 public:
  // gram (B, B): its lower triangle is read.
  RegularizedGram(const Eigen::Ref<const Matrix>& gram, double rho) {
    Matrix regularized = gram;
    regularized.diagonal().array() += rho;
    factor_.compute(regularized);
    if (factor_.info() != Eigen::Success) refuse_gram();
  }

  Index n_centers() const { return factor_.rows(); }

  Matrix solve(const Eigen::Ref<const Matrix>& moment) const { return factor_.solve(moment); }

 private:
  Eigen::LLT<Matrix, Eigen::Lower> factor_;
};

// Eigen's tridiagonal reduction, G = Q T Q^T, in steps between which it can be interrupted: it takes seconds for
// thousands of centres. Householder vector v of column k, with H = I - h v v^T: H G H = G - v w^T - w v^T where
// w = p - (h/2) (p . v) v and p = h G v.
class Tridiagonal {
 public:
  // gram (B, B): its lower triangle is read.
  explicit Tridiagonal(const Matrix& gram) : packed_(gram), scales_(std::max<Index>(gram.rows() - 1, 0)) {
    Vector update(scales_.size());
    for (Index k = 0; k < scales_.size(); ++k) {
      check_interruption();
      const Index rest = gram.rows() - 1 - k;
      auto reflector = packed_.col(k).tail(rest);
      double scale = 0, below = 0;
      reflector.makeHouseholderInPlace(scale, below);
      reflector[0] = 1;
      auto trailing = packed_.bottomRightCorner(rest, rest).selfadjointView<Eigen::Lower>();
      auto w = update.head(rest);
      w.noalias() = trailing * (scale * reflector);
      w -= scale / 2 * w.dot(reflector) * reflector;
      trailing.rankUpdate(reflector, w, -1.0);
      reflector[0] = below;
      scales_[k] = scale;
    }
  }

  Vector diagonal() const { return packed_.diagonal(); }
  Vector below_diagonal() const { return packed_.diagonal<-1>(); }
  auto q() const { return Eigen::householderSequence(packed_, scales_).setLength(scales_.size()).setShift(1); }

 private:
  Matrix packed_;  // (B, B): T, and below it the reflectors
  Vector scales_;  // (B - 1)
};

// G = Q T Q^T with T tridiagonal: G + rho I = Q (T + rho I) Q^T, so each rho costs only its right-hand sides.
class ReducedGram {
 public:
  // gram (B, B): its lower triangle is read; moment (B, S).
  ReducedGram(const Matrix& gram, const Matrix& moment) : reduction_(gram) {
    diagonal_ = reduction_.diagonal();
    below_ = reduction_.below_diagonal();
    moment_ = reduction_.q().adjoint() * moment;
  }

  // (B, S * rhos): Theta of the first rho, of the second, ...
  Matrix solve(const std::vector<double>& rhos) const {
    const Index n = diagonal_.size(), n_classes = moment_.cols();
    Matrix theta(n, n_classes * static_cast<Index>(rhos.size()));
    Vector pivot(n), factor(n);
    for (std::size_t r = 0; r < rhos.size(); ++r) {
      // T + rho I = L D L^T
      for (Index i = 0; i < n; ++i) {
        pivot[i] = diagonal_[i] + rhos[r];
        if (i > 0) {
          factor[i] = below_[i - 1] / pivot[i - 1];
          pivot[i] -= factor[i] * below_[i - 1];
        }
        if (!(pivot[i] > 0)) refuse_gram();
      }
      auto own = theta.middleCols(static_cast<Index>(r) * n_classes, n_classes);
      own = moment_;
      for (Index i = 1; i < n; ++i) own.row(i) -= factor[i] * own.row(i - 1);
      own.row(n - 1) /= pivot[n - 1];
      for (Index i = n - 2; i >= 0; --i) own.row(i) = own.row(i) / pivot[i] - factor[i + 1] * own.row(i + 1);
    }
    return reduction_.q() * theta;
  }

 private:
  Tridiagonal reduction_;
  Vector diagonal_;  // (B)
  Vector below_;     // (B - 1)
  Matrix moment_;    // Q^T H
};

}  // namespace drhmm
