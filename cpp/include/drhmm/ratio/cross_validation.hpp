// Held-out squared loss of every (sigma, rho), from Gram matrices alone.
#pragma once

#include <vector>

#include "drhmm/parallel.hpp"
#include "drhmm/ratio/gram.hpp"
#include "drhmm/ratio/solve.hpp"

namespace drhmm {

// frames and targets hold the folds one after the other, fold_sizes rows each.
// loss(sigma, rho, fold), rho fastest but one, fold fastest: sum over the weighted frames of the fold of
// |Theta^T phi - m|^2 with Theta learned from the other folds and rho = relative_rho * their total weight.
inline void cross_validation_loss(const ConstRows& frames, const ConstRows& targets,
                                  const Eigen::Map<const Vector>& weights, const std::vector<Index>& fold_sizes,
                                  const ConstRows& centers, const std::vector<double>& sigmas,
                                  const std::vector<double>& relative_rhos, int n_threads, double* loss) {
  const std::size_t n_folds = fold_sizes.size();
  parallel_for(static_cast<Index>(sigmas.size()), n_threads, [&](Index s) {
    const SquaredExponential features(centers, sigmas[static_cast<std::size_t>(s)]);
    std::vector<GramStatistics> folds(n_folds, GramStatistics(centers.rows(), targets.cols()));
    GramStatistics total(centers.rows(), targets.cols());
    std::vector<double> squares(n_folds);
    Index first = 0;
    for (std::size_t f = 0; f < n_folds; ++f) {
      const Index size = fold_sizes[f];
      const ConstRows fold_frames(frames.row(first).data(), size, frames.cols());
      const ConstRows fold_targets(targets.row(first).data(), size, targets.cols());
      const Eigen::Map<const Vector> fold_weights(weights.data() + first, size);
      folds[f].add(features, fold_frames, fold_targets, fold_weights);
      squares[f] = fold_targets.rowwise().squaredNorm().dot(fold_weights);
      total.merge(folds[f]);
      first += size;
    }
    const double total_weight = weights.sum();
    first = 0;
    for (std::size_t f = 0; f < n_folds; ++f) {
      const double training_weight =
          total_weight - Eigen::Map<const Vector>(weights.data() + first, fold_sizes[f]).sum();
      first += fold_sizes[f];
      GramStatistics training = total;
      training.remove(folds[f]);
      const Matrix held_out = folds[f].gram();
      for (std::size_t r = 0; r < relative_rhos.size(); ++r) {
        const RegularizedGram factor(training.lower_gram(), relative_rhos[r] * training_weight);
        const Matrix theta = factor.solve(training.moment());
        // sum |Theta^T phi - m|^2 = tr Theta^T G Theta - 2 tr Theta^T H + sum |m|^2 over the held-out frames
        const double fit = theta.cwiseProduct(held_out * theta - 2 * folds[f].moment()).sum();
        loss[(static_cast<std::size_t>(s) * relative_rhos.size() + r) * n_folds + f] = fit + squares[f];
      }
    }
  });
}

}  // namespace drhmm
