// Sufficient statistics of least-squares ratios: sums over frames, which merge in any order.
#pragma once

#include <utility>

#include "drhmm/features/squared_exponential.hpp"

namespace drhmm {

class GramStatistics {
 public:
  GramStatistics(Index n_centers, Index n_classes)
      : gram_(Matrix::Zero(n_centers, n_centers)),
        moment_(Matrix::Zero(n_centers, n_classes)),
        mass_(Vector::Zero(n_classes)) {}

  GramStatistics(Matrix gram, Matrix moment, Vector mass)
      : gram_(std::move(gram)), moment_(std::move(moment)), mass_(std::move(mass)) {}

  // Adds Phi^T W Phi, Phi^T W M and 1^T W M of frames (n, D), targets (n, S) and weights (n), block by block.
  void add(const SquaredExponential& features, const ConstRows& frames, const ConstRows& targets,
           const Eigen::Map<const Vector>& weights);
  void merge(const GramStatistics& other);

  Index n_centers() const { return gram_.rows(); }
  Index n_classes() const { return moment_.cols(); }

  const Matrix& lower_gram() const { return gram_; }  // only the lower triangle is filled
  Matrix gram() const;                                // both triangles
  const Matrix& moment() const { return moment_; }
  const Vector& mass() const { return mass_; }

 private:
  Matrix gram_;    // (B, B)
  Matrix moment_;  // (B, S)
  Vector mass_;    // (S)
};

// Phi^T M of frames (n, D) and targets (n, S), block by block: the only sum that changes between iterations of EM.
Matrix feature_moment(const SquaredExponential& features, const ConstRows& frames, const ConstRows& targets);

}  // namespace drhmm
