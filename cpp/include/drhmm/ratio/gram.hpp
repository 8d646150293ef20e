// Sufficient statistics of least-squares ratios: sums over frames, which merge in any order.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "drhmm/features/squared_exponential.hpp"
#include "drhmm/interruption.hpp"

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
           const Eigen::Map<const Vector>& weights) {
    constexpr Index kBlock = 512;
    RowMatrix phi;
    for (Index first = 0; first < frames.rows(); first += kBlock) {
      check_interruption();
      const Index count = std::min(kBlock, frames.rows() - first);
      features.evaluate(frames.middleRows(first, count), phi);
      const Vector root = weights.segment(first, count).cwiseSqrt();
      phi = root.asDiagonal() * phi;
      const RowMatrix weighted = root.asDiagonal() * targets.middleRows(first, count);
      gram_.selfadjointView<Eigen::Lower>().rankUpdate(phi.transpose());
      moment_.noalias() += phi.transpose() * weighted;
      mass_.noalias() += weighted.transpose() * root;
    }
  }

  void merge(const GramStatistics& other) {
    if (other.n_centers() != n_centers() || other.n_classes() != n_classes()) {
      throw std::invalid_argument("statistics of different sizes cannot be merged");
    }
    gram_ += other.gram_;
    moment_ += other.moment_;
    mass_ += other.mass_;
  }

  Index n_centers() const { return gram_.rows(); }
  Index n_classes() const { return moment_.cols(); }

  const Matrix& lower_gram() const { return gram_; }  // only the lower triangle is filled
  Matrix gram() const { return gram_.selfadjointView<Eigen::Lower>(); }
  const Matrix& moment() const { return moment_; }
  const Vector& mass() const { return mass_; }

 private:
  Matrix gram_;    // (B, B)
  Matrix moment_;  // (B, S)
  Vector mass_;    // (S)
};

// Phi^T M of frames (n, D) and targets (n, S), block by block: the only sum that changes between iterations of EM.
inline Matrix feature_moment(const SquaredExponential& features, const ConstRows& frames, const ConstRows& targets) {
  constexpr Index kBlock = 512;
  Matrix moment = Matrix::Zero(features.n_centers(), targets.cols());
  RowMatrix phi;
  for (Index first = 0; first < frames.rows(); first += kBlock) {
    check_interruption();
    const Index count = std::min(kBlock, frames.rows() - first);
    features.evaluate(frames.middleRows(first, count), phi);
    moment.noalias() += phi.transpose() * targets.middleRows(first, count);
  }
  return moment;
}

}  // namespace drhmm
