// Held-out loss and held-out estimates of every rho, from one Gram matrix per fold.
#pragma once

#include <vector>

#include "drhmm/ratio/gram.hpp"

namespace drhmm {

// frames (N, D) and targets (N, S) hold the folds one after the other, fold_sizes rows each. For every kernel width and
// fold, Theta is learned from the other folds, with rho = relative_rho * their total weight.
//   loss (sigmas, rhos, folds): sum over the weighted frames of the fold of |Theta^T phi - m|^2
//   estimates (sigmas, rhos, N, S): Theta^T phi of every frame; may be null
class CrossValidation {
 public:
  CrossValidation(const ConstRows& frames, const ConstRows& targets, const Eigen::Map<const Vector>& weights,
                  const std::vector<Index>& fold_sizes, const std::vector<double>& relative_rhos)
      : frames_(frames), targets_(targets), weights_(weights), sizes_(fold_sizes), rhos_(relative_rhos) {
    begins_.assign(fold_sizes.size() + 1, 0);
    for (std::size_t f = 0; f < fold_sizes.size(); ++f) begins_[f + 1] = begins_[f] + fold_sizes[f];
  }

  void run(const ConstRows& centers, const std::vector<double>& sigmas, int n_threads, double* loss,
           double* estimates) const;

 private:
  Index n_folds() const { return static_cast<Index>(sizes_.size()); }
  Index n_rhos() const { return static_cast<Index>(rhos_.size()); }
  ConstRows rows(const ConstRows& matrix, std::size_t f) const {
    return {matrix.data() + begins_[f] * matrix.cols(), sizes_[f], matrix.cols()};
  }
  Eigen::Map<const Vector> weights(std::size_t f) const { return {weights_.data() + begins_[f], sizes_[f]}; }
  void evaluate(const SquaredExponential& features, const GramStatistics* folds, Index fold, double* loss,
                double* estimates) const;

  ConstRows frames_, targets_;
  Eigen::Map<const Vector> weights_;
  std::vector<Index> sizes_, begins_;
  std::vector<double> rhos_;
};

}  // namespace drhmm
