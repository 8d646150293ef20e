// Evidence for the unknown: how badly the known states explain a frame, as e-values of two scores.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "drhmm/ratio/class_gaussians.hpp"
#include "drhmm/ratio/kernel_expansion.hpp"

namespace drhmm {

// From a score to its p-value among normal frames, and from there to log e(p).
class ScoreTable {
 public:
  // knots (m) never decrease, pvalues (m) decrease, and of equal knots the first counts; beyond the last knot u the
  // tail is p = p_u (1 + shape (s - u) / spread) ^ (-1 / shape), or p_u exp(-(s - u) / spread) where the shape is 0.
  ScoreTable(Vector knots, Vector pvalues, double shape, double spread)
      : knots_(std::move(knots)), pvalues_(std::move(pvalues)), shape_(shape), spread_(spread) {}

  // log e(p), e(p) = (1 - p + p log p) / (p log^2 p); 1/2 at p = 1, and its mean over uniform p is 1.
  double log_e(double score) const {
    const Index last = knots_.size() - 1;
    double l, p;  // l = -log p
    if (score > knots_[last]) {
      const double excess = (score - knots_[last]) / spread_;
      l = (shape_ > 0 ? std::log1p(shape_ * excess) / shape_ : excess) - std::log(pvalues_[last]);
      p = std::exp(-l);
    } else {
      p = pvalue(score, last);
      l = -std::log(p);
    }
    if (l > kNearOne) return std::log((1 - p - l * p) / (l * l)) + l;
    constexpr double kSeries[] = {-1. / 45360, 1. / 5760, -1. / 840, 1. / 144, -1. / 30, 1. / 8, -1. / 3, 1. / 2};
    double sum = 0;
    for (const double coefficient : kSeries) sum = sum * l + coefficient;
    return std::log(sum) + l;
  }

 private:
  static constexpr double kNearOne = 0.05;  // -log p below which 1 - p + p log p loses its digits

  // p of a score up to the last knot
  double pvalue(double score, Index last) const {
    if (!(score > knots_[0])) return pvalues_[0];
    const Index k = std::lower_bound(knots_.data(), knots_.data() + last, score) - knots_.data();
    const double share = (score - knots_[k - 1]) / (knots_[k] - knots_[k - 1]);
    return pvalues_[k - 1] + share * (pvalues_[k] - pvalues_[k - 1]);
  }

  Vector knots_, pvalues_;
  double shape_, spread_;
};

// Scores: minus the log density of a mixture of class Gaussians, and of kernels on whitened frames, each up to a
// constant. log w_* = joint log((e_G^kappa_G + e_K^kappa_K) / 2).
class NoveltyEvidence {
 public:
  static constexpr Index kScores = 2;

  // shares (S); origin (D); whitening (D, D), of which the lower triangle is read; density: of one "state", the density
  NoveltyEvidence(ClassGaussians gaussians, const Vector& shares, Vector origin, const ConstRows& whitening,
                  KernelExpansion<double> density, std::array<ScoreTable, kScores> tables,
                  std::array<double, kScores> scales, double joint)
      : gaussians_(std::move(gaussians)),
        log_shares_(shares.array().log()),
        origin_(std::move(origin)),
        whitening_(whitening.triangularView<Eigen::Lower>()),
        density_(std::move(density)),
        tables_(std::move(tables)),
        scales_(scales),
        joint_(joint) {}

  Index frame_size() const { return origin_.size(); }
  Index n_states() const { return log_shares_.size(); }
  // The approximate number of multiplications per frame.
  Index work_per_frame() const {
    return gaussians_.work_per_frame() + frame_size() * frame_size() / 2 + density_.n_centers() * (frame_size() + 1);
  }
  // The size of the scratch memory of log_evidence_of_one, in numbers.
  std::size_t scratch_size() const {
    return std::max(gaussians_.scratch_size() + static_cast<std::size_t>(n_states()),
                    density_.scratch_size() + static_cast<std::size_t>(frame_size()));
  }

  // log w_* of one frame (D).
  double log_evidence_of_one(const double* frame, double* scratch) const {
    const Index s = n_states(), d = frame_size();
    gaussians_.log_densities_of_one(frame, scratch + s, scratch);
    const double gaussian = mixture_score(scratch);
    for (Index k = 0; k < d; ++k) scratch[k] = 0;
    for (Index e = 0; e < d; ++e) {
      const double value = from_origin(frame[e], e);
      for (Index k = e; k < d; ++k) scratch[k] += whitening_(k, e) * value;
    }
    double density = 0;
    density_.sums_of_one(scratch, scratch + d, &density);
    return log_evidence(gaussian, density_score(density));
  }

  // out (n, 2) <- the scores of frames (n, D).
  void scores(const RowMatrix& frames, RowMatrix& out) const {
    const Index n = frames.rows();
    RowMatrix logs(n, n_states());
    gaussians_.log_densities(frames, logs);
    RowMatrix centered(n, frame_size());
    for (Index k = 0; k < n; ++k) {
      for (Index e = 0; e < frame_size(); ++e) centered(k, e) = from_origin(frames(k, e), e);
    }
    const RowMatrix white = centered * whitening_.transpose();
    RowMatrix densities(n, 1);
    density_.sums(white, densities);
    out.resize(n, kScores);
    for (Index k = 0; k < n; ++k) {
      out(k, 0) = mixture_score(logs.row(k).data());
      out(k, 1) = density_score(densities(k, 0));
    }
  }

  double log_evidence(double gaussian, double kernel) const {
    const double first = scales_[0] * tables_[0].log_e(gaussian);
    const double second = scales_[1] * tables_[1].log_e(kernel);
    const double low = std::min(first, second), high = std::max(first, second);
    return joint_ * (high + std::log1p(std::exp(low - high)) - kLog2);
  }

 private:
  static constexpr double kLog2 = 0.6931471805599453;
  static constexpr double kLeastDensity = 1e-300;  // what is farther from all centres is as far as this
  static constexpr double kFarthest = 1e100;

  double from_origin(double value, Index column) const {
    return std::min(std::max(value - origin_[column], -kFarthest), kFarthest);
  }

  // -log sum_i p_i N_i from log densities (S)
  double mixture_score(const double* logs) const {
    double best = logs[0] + log_shares_[0], total = 0;
    for (Index i = 1; i < n_states(); ++i) best = std::max(best, logs[i] + log_shares_[i]);
    for (Index i = 0; i < n_states(); ++i) total += std::exp(logs[i] + log_shares_[i] - best);
    return -best - std::log(total);
  }

  static double density_score(double density) { return -std::log(density > kLeastDensity ? density : kLeastDensity); }

  ClassGaussians gaussians_;
  Vector log_shares_;  // (S)
  Vector origin_;      // (D)
  Matrix whitening_;   // (D, D), lower triangular
  KernelExpansion<double> density_;
  std::array<ScoreTable, kScores> tables_;
  std::array<double, kScores> scales_;
  double joint_;
};

}  // namespace drhmm
