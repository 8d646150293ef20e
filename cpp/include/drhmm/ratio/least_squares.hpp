// Log density ratios between states from least-squares posterior estimates.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "drhmm/features/frames.hpp"
#include "drhmm/parallel.hpp"
#include "drhmm/ratio/kernel_expansion.hpp"

namespace drhmm {

// log w_i(y) = kappa log(q_i(y) / prior_i), q_i = max(theta_i^T phi(y), floor * S * prior_i), up to a constant per row.
class LeastSquaresRatio {
 public:
  // centers (B, D), theta (B, S), prior (S)
  LeastSquaresRatio(Framing framing, const ConstRows& centers, double sigma, const Matrix& theta, Vector prior,
                    double floor, double evidence_scale)
      : framing_(std::move(framing)),
        kernels_(centers, sigma, theta),
        single_kernels_(centers, sigma, theta),
        prior_(std::move(prior)),
        floor_(floor),
        floors_(floor * static_cast<double>(prior_.size()) * prior_),
        evidence_scale_(evidence_scale) {}

  const Framing& framing() const { return framing_; }
  Index n_states() const { return prior_.size(); }
  // Multiplications that one frame takes, about.
  Index work_per_frame() const { return kernels_.n_centers() * (kernels_.frame_size() + n_states()); }

  // out (n, S) <- theta_i^T phi(y), unclipped; NaN where a frame is missing.
  void estimates(const ConstRows& samples, const std::vector<Index>& lengths, int n_threads, bool single,
                 Rows out) const {
    for_each_block(samples, lengths, n_threads, single,
                   [&](Index first, const RowMatrix& values) { out.middleRows(first, values.rows()) = values; });
  }

  // out (n, S), or (n, S + 1) with the evidence for novelty in the last column:
  // w_* = q_*^kappa, q_* = 1 - sum_i theta_i^T phi(y) clipped to [floor, 1].
  void log_ratios(const ConstRows& samples, const std::vector<Index>& lengths, int n_threads, bool single,
                  Rows out) const {
    for_each_block(samples, lengths, n_threads, single,
                   [&](Index first, RowMatrix& values) { evidence(values, first, out); });
  }

  // Numbers that log_ratios_of_one needs beside its arguments.
  std::size_t scratch_size() const { return kernels_.scratch_size(); }

  // out (S), or (S + 1) with novelty, for one frame (D) that is there already.
  void log_ratios_of_one(const double* frame, bool is_missing, double* scratch, double* out, Index n_columns) const {
    if (is_missing) {
      std::fill(out, out + n_columns, std::numeric_limits<double>::quiet_NaN());
      return;
    }
    kernels_.sums_of_one(frame, scratch, out);
    const double novelty = novelty_evidence(std::accumulate(out, out + n_states(), 0.0));
    bool none = true;
    for (Index i = 0; i < n_states(); ++i) {
      const double q = out[i] < floors_[i] ? floors_[i] : out[i];
      none = none && q == 0;
      out[i] = evidence_scale_ * std::log(q / prior_[i]);
    }
    if (none) std::fill(out, out + n_states(), 0.0);
    if (n_columns > n_states()) {
      out[n_states()] = novelty;
      keep_within_reach(out);
    }
  }

  // The same for frames that are there already, one block of them: out rows first..first+count-1.
  void frame_log_ratios(const RowMatrix& frames, const std::vector<char>& missing, Index first, Rows out) const {
    RowMatrix values(frames.rows(), n_states());
    block_estimates(kernels_, frames, missing, values);
    evidence(values, first, out);
  }

 private:
  // Where the unknown and the known states are compared, evidence counts up to here, so that the known states keep a
  // posterior that double can hold, and with it their ratios to one another: at a frame the unknown is at most e^230
  // times as likely as the best of them, e^280 times as any, and e^-200 times as the best at least. Whatever the most
  // probable states are, a known one at some frame then costs at most e^280 there, e^200 where the chain has to come
  // back by way of the unknown a frame later, and a few transitions, which python/drhmm/novelty.py has limits for. What
  // lies beyond changes no probability by more than e^-50. evidence (S + 1), the unknown last.
  void keep_within_reach(double* evidence) const {
    constexpr double kAboveBest = 230, kAboveAny = 280, kBelowBest = 200;
    double* const unknown = evidence + n_states();
    const double best = *std::max_element(evidence, unknown);
    if (*unknown > best + kAboveBest) *unknown = best + kAboveBest;
    if (*unknown < best - kBelowBest) *unknown = best - kBelowBest;
    for (double* known = evidence; known != unknown; ++known) {
      if (*known < *unknown - kAboveAny) *known = *unknown - kAboveAny;
    }
  }

  // Calls use(first, values) for all frames in blocks, with values (count, S); the features are never stored.
  template <class Use>
  void for_each_block(const ConstRows& samples, const std::vector<Index>& lengths, int n_threads, bool single,
                      const Use& use) const {
    constexpr Index kBlock = 256;
    const FrameReader reader(framing_, samples, lengths);
    parallel_for((reader.n_frames() + kBlock - 1) / kBlock, n_threads, [&](Index block) {
      const Index first = block * kBlock;
      const Index count = std::min(kBlock, reader.n_frames() - first);
      RowMatrix frames, values(count, n_states());
      std::vector<char> missing;
      reader.read(first, count, frames, missing);
      if (single) {
        block_estimates(single_kernels_, frames, missing, values);
      } else {
        block_estimates(kernels_, frames, missing, values);
      }
      use(first, values);
    });
  }

  template <class Kernels>
  static void block_estimates(const Kernels& kernels, const RowMatrix& frames, const std::vector<char>& missing,
                              RowMatrix& values) {
    kernels.sums(frames, values);
    for (Index k = 0; k < frames.rows(); ++k) {
      if (missing[static_cast<std::size_t>(k)]) values.row(k).setConstant(std::numeric_limits<double>::quiet_NaN());
    }
  }

  // Rows first.. of out from estimates (count, S), which are used up.
  void evidence(RowMatrix& estimates, Index first, Rows& out) const {
    const Index count = estimates.rows();
    if (out.cols() > n_states()) {
      for (Index k = 0; k < count; ++k) out(first + k, n_states()) = novelty_evidence(estimates.row(k).sum());
    }
    for (Index k = 0; k < count; ++k) {
      for (Index i = 0; i < n_states(); ++i) {
        const double q = estimates(k, i) < floors_[i] ? floors_[i] : estimates(k, i);
        estimates(k, i) = q / prior_[i];
      }
      // Every class estimates 0: no evidence, all w_ij = 1.
      if (floor_ == 0 && (estimates.row(k).array() == 0).all()) estimates.row(k).setOnes();
    }
    out.block(first, 0, count, n_states()) = evidence_scale_ * estimates.array().log();
    if (out.cols() == n_states()) return;
    for (Index k = first; k < first + count; ++k) keep_within_reach(out.row(k).data());
  }

  // NaN for a missing frame, whose estimates are NaN.
  double novelty_evidence(double sum) const {
    const double q = 1 - sum;
    return evidence_scale_ * std::log(q < floor_ ? floor_ : (q > 1 ? 1 : q));
  }

  Framing framing_;
  KernelExpansion<double> kernels_;
  KernelExpansion<float> single_kernels_;
  Vector prior_;  // (S)
  double floor_;
  Vector floors_;  // (S)
  double evidence_scale_;
};

}  // namespace drhmm
