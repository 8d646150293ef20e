// Held-out loss and held-out estimates of every rho, from one Gram matrix per fold.
#pragma once

#include <algorithm>
#include <vector>

#include "drhmm/parallel.hpp"
#include "drhmm/ratio/gram.hpp"
#include "drhmm/ratio/solve.hpp"

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
           double* estimates) const {
    const Index n_tasks = static_cast<Index>(sigmas.size()) * n_folds();
    std::vector<SquaredExponential> features;
    for (const double sigma : sigmas) features.emplace_back(centers, sigma);
    std::vector<GramStatistics> statistics(static_cast<std::size_t>(n_tasks),
                                           GramStatistics(centers.rows(), targets_.cols()));
    parallel_for(n_tasks, n_threads, [&](Index task) {
      const auto f = static_cast<std::size_t>(task % n_folds());
      statistics[static_cast<std::size_t>(task)].add(features[static_cast<std::size_t>(task / n_folds())],
                                                     rows(frames_, f), rows(targets_, f), weights(f));
    });
    parallel_for(n_tasks, n_threads, [&](Index task) {
      const Index s = task / n_folds();
      evaluate(features[static_cast<std::size_t>(s)], statistics.data() + s * n_folds(), task % n_folds(),
               loss + s * n_rhos() * n_folds(),
               estimates == nullptr ? nullptr : estimates + s * n_rhos() * targets_.size());
    });
  }

 private:
  Index n_folds() const { return static_cast<Index>(sizes_.size()); }
  Index n_rhos() const { return static_cast<Index>(rhos_.size()); }
  ConstRows rows(const ConstRows& matrix, std::size_t f) const {
    return {matrix.data() + begins_[f] * matrix.cols(), sizes_[f], matrix.cols()};
  }
  Eigen::Map<const Vector> weights(std::size_t f) const { return {weights_.data() + begins_[f], sizes_[f]}; }

  // Loss (rhos, folds) and estimates (rhos, N, S) of one fold.
  void evaluate(const SquaredExponential& features, const GramStatistics* folds, Index fold, double* loss,
                double* estimates) const {
    constexpr Index kBlock = 128;
    const auto f = static_cast<std::size_t>(fold);
    const Index n_classes = targets_.cols();
    // Adds up the other folds instead of subtracting this one from all: nothing cancels, whatever the weights.
    GramStatistics training(features.n_centers(), n_classes);
    double training_weight = 0;
    for (std::size_t other = 0; other < sizes_.size(); ++other) {
      if (other == f) continue;
      training.merge(folds[other]);
      training_weight += weights(other).sum();
    }
    std::vector<double> rhos(rhos_);
    for (double& rho : rhos) rho *= training_weight;
    const Matrix thetas = ReducedGram(training.lower_gram(), training.moment()).solve(rhos);
    // sum |Theta^T phi - m|^2 = tr Theta^T G Theta - 2 tr Theta^T H + sum |m|^2 over the held-out frames
    Matrix residual = folds[f].lower_gram().selfadjointView<Eigen::Lower>() * thetas;
    residual -= 2 * folds[f].moment().replicate(1, n_rhos());
    const double squares = rows(targets_, f).rowwise().squaredNorm().dot(weights(f));
    for (Index r = 0; r < n_rhos(); ++r) {
      const auto own = thetas.middleCols(r * n_classes, n_classes);
      loss[r * n_folds() + fold] = own.cwiseProduct(residual.middleCols(r * n_classes, n_classes)).sum() + squares;
    }
    if (estimates == nullptr) return;
    RowMatrix phi;
    for (Index first = 0; first < sizes_[f]; first += kBlock) {
      check_interruption();
      const Index count = std::min(kBlock, sizes_[f] - first);
      features.evaluate(rows(frames_, f).middleRows(first, count), phi);
      const RowMatrix values = phi * thetas;
      for (Index r = 0; r < n_rhos(); ++r) {
        Rows out(estimates + (r * frames_.rows() + begins_[f] + first) * n_classes, count, n_classes);
        out = values.middleCols(r * n_classes, n_classes);
      }
    }
  }

  ConstRows frames_, targets_;
  Eigen::Map<const Vector> weights_;
  std::vector<Index> sizes_, begins_;
  std::vector<double> rhos_;
};

}  // namespace drhmm
