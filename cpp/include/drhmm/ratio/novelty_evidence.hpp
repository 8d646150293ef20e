// Evidence for the unknown: how badly the known states explain a frame, as e-values of two scores.
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "drhmm/ratio/class_gaussians.hpp"
#include "drhmm/ratio/kernel_expansion.hpp"

namespace drhmm {

// Converts a score to its p-value among normal frames, and that to log e(p).
class ScoreTable {
 public:
  // knots (m) never decrease, pvalues (m) decrease, and of equal knots the first counts; beyond the last knot u the
  // tail is p = p_u (1 + shape (s - u) / spread) ^ (-1 / shape), or p_u exp(-(s - u) / spread) where the shape is 0.
  ScoreTable(Vector knots, Vector pvalues, double shape, double spread)
      : knots_(std::move(knots)), pvalues_(std::move(pvalues)), shape_(shape), spread_(spread) {}

  // log e(p), e(p) = (1 - p + p log p) / (p log^2 p); 1/2 at p = 1, and its mean over uniform p is 1.
  double log_e(double score) const;

 private:
  double pvalue(double score, Index last) const;  // of a score up to the last knot

  Vector knots_, pvalues_;  // (m)
  double shape_, spread_;
};

// Scores: minus the log density of a mixture of class Gaussians, and of kernels on whitened frames, each up to a
// constant. log w_* = joint log((e_G^kappa_G + e_K^kappa_K) / 2).
class NoveltyEvidence {
 public:
  static constexpr Index kScores = 2;

  // shares (S); origin (D); whitening (D, D): its lower triangle is read; density: an expansion with one column
  NoveltyEvidence(ClassGaussians gaussians, const Vector& shares, Vector origin, const ConstRows& whitening,
                  KernelExpansion<double> density, std::array<ScoreTable, kScores> tables,
                  std::array<double, kScores> scales, double joint);

  Index frame_size() const { return origin_.size(); }
  Index n_states() const { return log_shares_.size(); }
  Index work_per_frame() const {
    return gaussians_.work_per_frame() + frame_size() * frame_size() / 2 + density_.n_centers() * (frame_size() + 1);
  }
  Index scratch_size(Index n) const {
    return kScores * n +
           std::max(gaussians_.scratch_size(n) + n * n_states(), density_.scratch_size(n) + n * (frame_size() + 1));
  }

  // out (n) <- log w_* of frames (n, D)
  void log_evidence(const double* frames, Index n, double* scratch, double* out) const;

  // The scores of many frames, (n, 2), and their log w_*, (n).
  RowMatrix scores_of(const ConstRows& frames, int n_threads) const;
  Vector log_evidence_of(const ConstRows& frames, int n_threads) const;

 private:
  // out (n, 2) <- the scores of frames (n, D)
  void scores(const double* frames, Index n, double* scratch, double* out) const;
  double log_evidence_at(const double* scores) const;
  // -log sum_i p_i N_i from log densities (S)
  double mixture_score(const double* logs) const;

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
