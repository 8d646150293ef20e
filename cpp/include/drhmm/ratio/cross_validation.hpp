// Held-out loss and held-out estimates of every rho, from one Gram matrix per fold.
#pragma once

#include <algorithm>
#include <vector>

#include "drhmm/parallel.hpp"
#include "drhmm/ratio/gram.hpp"
#include "drhmm/ratio/solve.hpp"

namespace drhmm {

// frames (N, D) and targets (N, S) hold the folds one after the other, fold_sizes rows each; for every fold, Theta is
// learned from the other folds with rho = relative_rho * their total weight.
//   loss (rhos, folds): sum over the weighted frames of the fold of |Theta^T phi - m|^2
//   estimates (rhos, N, S): Theta^T phi of every frame
inline void cross_validate(const SquaredExponential& features, const ConstRows& frames, const ConstRows& targets,
                           const Eigen::Map<const Vector>& weights, const std::vector<Index>& fold_sizes,
                           const std::vector<double>& relative_rhos, int n_threads, double* loss, double* estimates) {
  constexpr Index kBlock = 128;
  const Index n_folds = static_cast<Index>(fold_sizes.size());
  const Index n_classes = targets.cols();
  const Index n_rhos = static_cast<Index>(relative_rhos.size());
  std::vector<Index> begins(fold_sizes.size() + 1, 0);
  for (std::size_t f = 0; f < fold_sizes.size(); ++f) begins[f + 1] = begins[f] + fold_sizes[f];
  const auto rows = [&](const ConstRows& matrix, std::size_t f) {
    return ConstRows(matrix.data() + begins[f] * matrix.cols(), fold_sizes[f], matrix.cols());
  };
  const auto fold_weights = [&](std::size_t f) {
    return Eigen::Map<const Vector>(weights.data() + begins[f], fold_sizes[f]);
  };

  std::vector<GramStatistics> folds(fold_sizes.size(), GramStatistics(features.n_centers(), n_classes));
  parallel_for(n_folds, n_threads, [&](Index fold) {
    const auto f = static_cast<std::size_t>(fold);
    folds[f].add(features, rows(frames, f), rows(targets, f), fold_weights(f));
  });
  parallel_for(n_folds, n_threads, [&](Index fold) {
    const auto f = static_cast<std::size_t>(fold);
    // The other folds are added up, not subtracted from all: nothing cancels, whatever the weights are.
    GramStatistics training(features.n_centers(), n_classes);
    double training_weight = 0;
    for (std::size_t other = 0; other < folds.size(); ++other) {
      if (other == f) continue;
      training.merge(folds[other]);
      training_weight += fold_weights(other).sum();
    }
    const Matrix held_out = folds[f].gram();
    const double squares = rows(targets, f).rowwise().squaredNorm().dot(fold_weights(f));
    Matrix thetas(features.n_centers(), n_rhos * n_classes);
    for (Index r = 0; r < n_rhos; ++r) {
      const double rho = relative_rhos[static_cast<std::size_t>(r)] * training_weight;
      const Matrix theta = RegularizedGram(training.lower_gram(), rho).solve(training.moment());
      // sum |Theta^T phi - m|^2 = tr Theta^T G Theta - 2 tr Theta^T H + sum |m|^2 over the held-out frames
      loss[r * n_folds + fold] = theta.cwiseProduct(held_out * theta - 2 * folds[f].moment()).sum() + squares;
      thetas.middleCols(r * n_classes, n_classes) = theta;
    }
    RowMatrix phi;
    for (Index first = 0; first < fold_sizes[f]; first += kBlock) {
      const Index count = std::min(kBlock, fold_sizes[f] - first);
      features.evaluate(rows(frames, f).middleRows(first, count), phi);
      const RowMatrix values = phi * thetas;
      for (Index r = 0; r < n_rhos; ++r) {
        Rows out(estimates + (r * frames.rows() + begins[f] + first) * n_classes, count, n_classes);
        out = values.middleCols(r * n_classes, n_classes);
      }
    }
  });
}

}  // namespace drhmm
