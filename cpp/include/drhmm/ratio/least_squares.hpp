// Log density ratios between states from least-squares posterior estimates.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "drhmm/features/frames.hpp"
#include "drhmm/features/squared_exponential.hpp"
#include "drhmm/parallel.hpp"

namespace drhmm {

// values (count, S) <- phi(y)^T Theta of frames (count, D); rows of missing frames are NaN.
inline void frame_estimates(const SquaredExponential& features, const Matrix& theta, const RowMatrix& frames,
                            const std::vector<char>& missing, RowMatrix& values) {
  RowMatrix phi;
  features.evaluate(frames, phi);
  values.noalias() = phi * theta;
  for (Index k = 0; k < frames.rows(); ++k) {
    if (missing[static_cast<std::size_t>(k)]) values.row(k).setConstant(std::numeric_limits<double>::quiet_NaN());
  }
}

// Calls use(first, values) for every frame of the reader in blocks, with values (count, S) = phi(y)^T Theta;
// rows of missing frames are NaN. The features of all frames are never stored.
template <class Use>
void for_each_estimate(const FrameReader& reader, const SquaredExponential& features, const Matrix& theta,
                       int n_threads, const Use& use) {
  constexpr Index kBlock = 128;
  const Index n_blocks = (reader.n_frames() + kBlock - 1) / kBlock;
  parallel_for(n_blocks, n_threads, [&](Index block) {
    const Index first = block * kBlock;
    const Index count = std::min(kBlock, reader.n_frames() - first);
    RowMatrix frames, values;
    std::vector<char> missing;
    reader.read(first, count, frames, missing);
    frame_estimates(features, theta, frames, missing, values);
    use(first, values);
  });
}

// log w_i(y) = kappa log(q_i(y) / prior_i), q_i = max(theta_i^T phi(y), floor * S * prior_i), up to a constant per row.
class LeastSquaresRatio {
 public:
  LeastSquaresRatio(Framing framing, SquaredExponential features, Matrix theta, Vector prior, double floor,
                    double evidence_scale)
      : framing_(std::move(framing)),
        features_(std::move(features)),
        theta_(std::move(theta)),
        prior_(std::move(prior)),
        floor_(floor),
        floors_(floor * static_cast<double>(prior_.size()) * prior_),
        evidence_scale_(evidence_scale) {}

  const Framing& framing() const { return framing_; }
  Index n_states() const { return theta_.cols(); }

  void estimates(const ConstRows& samples, const std::vector<Index>& lengths, int n_threads, Rows out) const {
    for_each_estimate(FrameReader(framing_, samples, lengths), features_, theta_, n_threads,
                      [&](Index first, const RowMatrix& values) { out.middleRows(first, values.rows()) = values; });
  }

  // out (n, S), or (n, S + 1) with the evidence for novelty in the last column:
  // w_* = q_*^kappa, q_* = 1 - sum_i theta_i^T phi(y) clipped to [floor, 1].
  void log_ratios(const ConstRows& samples, const std::vector<Index>& lengths, int n_threads, Rows out) const {
    for_each_estimate(FrameReader(framing_, samples, lengths), features_, theta_, n_threads,
                      [&](Index first, const RowMatrix& values) { evidence(values, first, out); });
  }

  // The same for frames that are there already, one block of them: out rows first..first+count-1.
  void frame_log_ratios(const RowMatrix& frames, const std::vector<char>& missing, Index first, Rows out) const {
    RowMatrix values;
    frame_estimates(features_, theta_, frames, missing, values);
    evidence(values, first, out);
  }

  // Multiplications that one frame takes, about.
  Index work_per_frame() const { return features_.n_centers() * (features_.frame_size() + n_states()); }

 private:
  void evidence(const RowMatrix& estimates, Index first, Rows& out) const {
    for (Index k = 0; k < estimates.rows(); ++k) {
      evidence(estimates.row(k), out.row(first + k).head(n_states()));
      if (out.cols() > n_states()) {
        // However little the known states account for a frame, their ratios to one another stay within reach: what lies
        // beyond e^500 changes no probability.
        constexpr double kBeyond = 500;
        const double best = out.row(first + k).head(n_states()).maxCoeff();
        out(first + k, n_states()) = std::min(novelty_evidence(estimates.row(k).sum()), best + kBeyond);
      }
    }
  }

  template <class Estimates, class Evidence>
  void evidence(const Estimates& estimates, Evidence&& log_ratios) const {
    bool none = true;
    for (Index i = 0; i < n_states(); ++i) {
      if (std::isnan(estimates[i])) {
        log_ratios.setConstant(std::numeric_limits<double>::quiet_NaN());
        return;
      }
      const double q = std::max(estimates[i], floors_[i]);
      none = none && q == 0;
      log_ratios[i] = evidence_scale_ * std::log(q / prior_[i]);
    }
    if (none) log_ratios.setZero();  // every class estimates 0: no evidence, all w_ij = 1
  }

  // NaN for a missing frame, whose estimates are NaN.
  double novelty_evidence(double sum) const {
    const double q = 1 - sum;
    return evidence_scale_ * std::log(q < floor_ ? floor_ : (q > 1 ? 1 : q));
  }

  Framing framing_;
  SquaredExponential features_;
  Matrix theta_;  // (B, S)
  Vector prior_;  // (S)
  double floor_;
  Vector floors_;  // (S)
  double evidence_scale_;
};

}  // namespace drhmm
