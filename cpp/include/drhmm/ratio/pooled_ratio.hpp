// Log density ratios between states: the sum of kernel, additive and Gaussian estimates, limited and scaled.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "drhmm/features/frames.hpp"
#include "drhmm/parallel.hpp"
#include "drhmm/ratio/additive_tables.hpp"
#include "drhmm/ratio/class_gaussians.hpp"
#include "drhmm/ratio/context_ridge.hpp"
#include "drhmm/ratio/kernel_expansion.hpp"
#include "drhmm/ratio/novelty_evidence.hpp"

namespace drhmm {

// One estimate of the ratios, and its exponent kappa in the pool.
template <class Estimate>
struct PoolMember {
  Estimate estimate;
  double scale;
};

struct KernelEstimate {
  KernelExpansion<double> wide;
  KernelExpansion<float> single;
};

// What the past of a time step says, and what the past of the time step kAhead later does: in batch only, for the scale
// of `ahead`.
struct ContextMembers {
  static constexpr Index kAhead = 4;

  std::shared_ptr<const Context> context;
  PoolMember<ContextRidge> now;
  std::optional<PoolMember<ContextRidge>> ahead;
};

// log w_i(y) = sum_m kappa_m log max(q_i^(m)(y) / prior_i, least_ratio) + shift_i, up to a constant per row. Least
// squares alone is a pool of one member. Members of scale 0 are not evaluated.
class PooledRatio {
 public:
  // prior, shift (S). floor: the smallest estimate of novelty if it is what the kernels leave. novelty: its evidence
  // otherwise.
  PooledRatio(Framing framing, Vector prior, double least_ratio, double floor, Vector shift,
              std::optional<PoolMember<KernelEstimate>> kernels, std::optional<PoolMember<AdditiveTables>> additive,
              std::optional<PoolMember<ClassGaussians>> gaussians,
              std::shared_ptr<const NoveltyEvidence> novelty = nullptr,
              std::optional<ContextMembers> context = std::nullopt)
      : framing_(std::move(framing)),
        prior_(std::move(prior)),
        least_ratio_(least_ratio),
        log_least_density_ratio_(std::max(std::log(least_ratio), -kMostAgainst)),
        floor_(floor),
        shift_(std::move(shift)),
        kernels_(std::move(kernels)),
        additive_(std::move(additive)),
        gaussians_(std::move(gaussians)),
        novelty_(std::move(novelty)),
        context_(std::move(context)) {}

  const Framing& framing() const { return framing_; }
  // What the features of streams are made by; null if no member looks at the past.
  std::shared_ptr<const Context> context() const { return context_ ? context_->context : nullptr; }
  Index n_states() const { return prior_.size(); }
  bool has_kernels() const { return kernels_.has_value(); }
  bool sees_novelty() const { return has_kernels() || novelty_ != nullptr; }

  // The approximate number of multiplications per frame.
  Index work_per_frame() const {
    Index work = 0;
    if (kernels_) work += kernels_->estimate.wide.n_centers() * (kernels_->estimate.wide.frame_size() + n_states());
    if (uses(additive_)) work += additive_->estimate.work_per_frame();
    if (uses(gaussians_)) work += gaussians_->estimate.work_per_frame();
    if (novelty_) work += novelty_->work_per_frame();
    if (context_) work += context_->context->work_per_frame() + context_->now.estimate.work_per_frame();
    return work;
  }

  // out (n, S) <- theta_i^T phi(y) of the kernels, unclipped; NaN where a frame is missing.
  void estimates(const ConstRows& samples, const std::vector<Index>& lengths, int n_threads, bool single,
                 Rows out) const {
    for_each_block(samples, lengths, n_threads,
                   [&](Index first, const RowMatrix& frames, const std::vector<char>& missing) {
                     RowMatrix values(frames.rows(), n_states());
                     kernel_sums(frames, single, values);
                     out.middleRows(first, frames.rows()) = values;
                     mark_missing(missing, first, out);
                   });
  }

  // out (n, S), or (n, S + 1) with the evidence for novelty in the last column: that of NoveltyEvidence, beside known
  // states with sum_i prior_i w_i = 1, or what the kernels leave: w_* = q_*^kappa, q_* = 1 - sum_i theta_i^T phi(y)
  // clipped to [floor, 1], kappa that of the kernels.
  void log_ratios(const ConstRows& samples, const std::vector<Index>& lengths, int n_threads, bool single,
                  Rows out) const {
    for_each_block(samples, lengths, n_threads,
                   [&](Index first, const RowMatrix& frames, const std::vector<char>& missing) {
                     RowMatrix past;
                     if (context_ && compares(out.cols()))
                       past = context_evidence(samples, lengths, first, frames.rows());
                     evidence(frames, missing, single, first, past, out);
                   });
  }

  // The size of the scratch memory of log_ratios_of_one, in numbers.
  std::size_t scratch_size() const {
    std::size_t size = 0;
    if (kernels_) size = kernels_->estimate.wide.scratch_size();
    if (uses(gaussians_)) size = std::max(size, gaussians_->estimate.scratch_size());
    if (novelty_) size = std::max(size, novelty_->scratch_size());
    return size + static_cast<std::size_t>(n_states());
  }

  // out (S), or (S + 1) with novelty, for one given frame (D) and the features of its context, if there is one.
  void log_ratios_of_one(const double* frame, bool is_missing, const double* features, double* scratch, double* out,
                         Index n_columns) const {
    if (is_missing) {
      std::fill(out, out + n_columns, std::numeric_limits<double>::quiet_NaN());
      return;
    }
    std::fill(out, out + n_states(), 0.0);
    double* const rest = scratch + n_states();
    if (compares(n_columns)) {
      known_of_one(frame, scratch, rest, out, n_columns);
      if (context_) add_context(features, scratch, out);
    }
    if (n_columns > n_states()) {
      if (novelty_) beside_known(novelty_->log_evidence_of_one(frame, rest), out);
      keep_within_reach(out);
    }
  }

  // The same for one block of given frames: rows first..first+count-1 of out. features: (count, F), or empty.
  void frame_log_ratios(const RowMatrix& frames, const std::vector<char>& missing, const RowMatrix& features,
                        Index first, Rows out) const {
    RowMatrix past;
    if (context_ && compares(out.cols())) {
      past.setZero(frames.rows(), n_states());
      Vector values(n_states());
      for (Index k = 0; k < frames.rows(); ++k) add_context(features.row(k).data(), values.data(), past.row(k).data());
    }
    evidence(frames, missing, false, first, past, out);
  }

 private:
  // The strongest evidence of a Gaussian against a state without a floor, in nats: its density is never 0.
  static constexpr double kMostAgainst = 1000;

  template <class Member>
  static bool uses(const Member& member) {
    return member.has_value() && member->scale != 0;
  }

  // Whether the evidence for novelty is what the kernels leave.
  bool leaves_novelty(Index n_columns) const { return n_columns > n_states() && !novelty_; }

  // Whether known states are compared. A single one beside the unknown has w_1 = 1, whatever its members say.
  bool compares(Index n_columns) const { return n_states() > 1 || n_columns == 1 || !novelty_; }

  // The evidence of the known states of one frame, and of the unknown if it is what the kernels leave.
  void known_of_one(const double* frame, double* values, double* rest, double* out, Index n_columns) const {
    const Index s = n_states();
    if (kernels_ && (kernels_->scale != 0 || leaves_novelty(n_columns))) {
      kernels_->estimate.wide.sums_of_one(frame, rest, values);
      if (leaves_novelty(n_columns)) out[s] = novelty_evidence(std::accumulate(values, values + s, 0.0));
      add_logs(values, kernels_->scale, out);
    }
    if (uses(additive_)) {
      additive_->estimate.estimates_of_one(frame, values);
      add_logs(values, additive_->scale, out);
    }
    if (uses(gaussians_)) {
      gaussians_->estimate.log_densities_of_one(frame, rest, values);
      const double best = *std::max_element(values, values + s);
      double total = 0;
      for (Index i = 0; i < s; ++i) total += prior_[i] * std::exp(values[i] - best);
      const double log_total = std::log(total);
      for (Index i = 0; i < s; ++i) {
        out[i] += gaussians_->scale * std::max(values[i] - best - log_total, log_least_density_ratio_);
      }
    }
    for (Index i = 0; i < s; ++i) out[i] += shift_[i];
  }

  // evidence (S + 1) <- that of the known states so that sum_i prior_i w_i = 1, and log w_*.
  void beside_known(double log_evidence, double* evidence) const {
    const Index s = n_states();
    const double best = *std::max_element(evidence, evidence + s);
    double total = 0;
    for (Index i = 0; i < s; ++i) total += prior_[i] * std::exp(evidence[i] - best);
    const double shift = best + std::log(total);
    for (Index i = 0; i < s; ++i) evidence[i] -= shift;
    evidence[s] = log_evidence;
  }

  // Limits the evidence between the unknown and the known states, so that double can hold the posteriors of the known
  // states and their ratios. At a frame the unknown is at most e^230 times as likely as the best known state, at most
  // e^280 times as likely as any, and at least e^-200 times as likely as the best. Then a known state at some frame
  // costs at most e^280 there, e^200 where the chain must return through the unknown a frame later, and a few
  // transitions, which python/drhmm/novelty.py limits. Beyond these limits no probability changes by more than e^-50.
  // evidence (S + 1), the unknown last.
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

  // Calls use(first, frames, missing) for each block of frames. The features are never stored.
  template <class Use>
  void for_each_block(const ConstRows& samples, const std::vector<Index>& lengths, int n_threads,
                      const Use& use) const {
    constexpr Index kBlock = 256;
    const FrameReader reader(framing_, samples, lengths);
    parallel_for((reader.n_frames() + kBlock - 1) / kBlock, n_threads, [&](Index block) {
      const Index first = block * kBlock;
      RowMatrix frames;
      std::vector<char> missing;
      reader.read(first, std::min(kBlock, reader.n_frames() - first), frames, missing);
      use(first, frames, missing);
    });
  }

  void kernel_sums(const RowMatrix& frames, bool single, RowMatrix& values) const {
    if (single) {
      kernels_->estimate.single.sums(frames, values);
    } else {
      kernels_->estimate.wide.sums(frames, values);
    }
  }

  // total (S) += what the context says of one time step. values: scratch (S).
  void add_context(const double* features, double* values, double* total) const {
    context_->now.estimate.estimates_of_one(features, values);
    add_logs(values, context_->now.scale, total);
  }

  // What the context says of time steps first..first+count-1, (count, S).
  RowMatrix context_evidence(const ConstRows& samples, const std::vector<Index>& lengths, Index first,
                             Index count) const {
    const ContextReader reader(*context_->context, samples, lengths);
    const Index more = context_->ahead ? ContextMembers::kAhead : 0;
    RowMatrix features, total = RowMatrix::Zero(count, n_states());
    reader.read(first, std::min(count + more, samples.rows() - first), features);
    Vector values(n_states());
    for (Index k = 0; k < count; ++k) {
      double* const row = total.row(k).data();
      add_context(features.row(k).data(), values.data(), row);
      if (!context_->ahead) continue;
      const Index later = std::min(first + k + ContextMembers::kAhead, reader.last_of(first + k)) - first;
      context_->ahead->estimate.estimates_of_one(features.row(later).data(), values.data());
      add_logs(values.data(), context_->ahead->scale, row);
    }
    return total;
  }

  // Rows first.. of out: the evidence of the known states, and of the unknown if it is what the kernels leave.
  void known(const RowMatrix& frames, bool single, Index first, const RowMatrix& past, Rows& out) const {
    const Index count = frames.rows(), s = n_states();
    RowMatrix values(count, s), total = RowMatrix::Zero(count, s);
    if (kernels_ && (kernels_->scale != 0 || leaves_novelty(out.cols()))) {
      kernel_sums(frames, single, values);
      if (leaves_novelty(out.cols())) {
        for (Index k = 0; k < count; ++k) out(first + k, s) = novelty_evidence(values.row(k).sum());
      }
      add_logs(values, kernels_->scale, total);
    }
    if (uses(additive_)) {
      additive_->estimate.estimates(frames, values);
      add_logs(values, additive_->scale, total);
    }
    if (uses(gaussians_)) {
      gaussians_->estimate.log_densities(frames, values);
      // log q_i / p_i = log N_i - log sum_j p_j N_j
      const Vector best = values.rowwise().maxCoeff();
      values.colwise() -= best;
      const RowMatrix densities = values.array().exp();
      const Vector log_sums = (densities * prior_).array().log();
      values.colwise() -= log_sums;
      total += gaussians_->scale * values.cwiseMax(log_least_density_ratio_);
    }
    if (past.size() > 0) total += past;
    out.block(first, 0, count, s) = total.rowwise() + shift_.transpose();
  }

  // Rows first.. of out: the evidence of frames (count, D), and of their context, past (count, S), or empty.
  void evidence(const RowMatrix& frames, const std::vector<char>& missing, bool single, Index first,
                const RowMatrix& past, Rows& out) const {
    const Index count = frames.rows(), s = n_states();
    out.block(first, 0, count, s).setZero();
    if (compares(out.cols())) known(frames, single, first, past, out);
    if (out.cols() > s) {
      if (novelty_) {
        RowMatrix scores;
        novelty_->scores(frames, scores);
        for (Index k = 0; k < count; ++k) {
          beside_known(novelty_->log_evidence(scores(k, 0), scores(k, 1)), out.row(first + k).data());
        }
      }
      for (Index k = first; k < first + count; ++k) keep_within_reach(out.row(k).data());
    }
    mark_missing(missing, first, out);
  }

  // total (count, S) += kappa log max(q_i / prior_i, least_ratio) of posterior estimates q (count, S).
  // Overwrites q.
  void add_logs(RowMatrix& estimates, double scale, RowMatrix& total) const {
    if (scale == 0) return;
    for (Index k = 0; k < estimates.rows(); ++k) {
      bool none = true;
      for (Index i = 0; i < n_states(); ++i) {
        estimates(k, i) = limited(estimates(k, i) / prior_[i]);
        none = none && estimates(k, i) == 0;
      }
      if (none) estimates.row(k).setOnes();  // every class estimates 0: no evidence, all w_ij = 1
    }
    total.array() += scale * estimates.array().log();
  }

  // The same for one frame.
  void add_logs(const double* estimates, double scale, double* total) const {
    bool none = true;
    for (Index i = 0; i < n_states(); ++i) none = none && limited(estimates[i] / prior_[i]) == 0;
    if (none || scale == 0) return;
    for (Index i = 0; i < n_states(); ++i) total[i] += scale * std::log(limited(estimates[i] / prior_[i]));
  }

  // Kernels underflow far from all centres. Sums of what is left of them depend on the order of addition, and are 0.
  double limited(double ratio) const {
    constexpr double kLeastCertain = 1e-290;
    return ratio < std::max(least_ratio_, kLeastCertain) ? least_ratio_ : ratio;
  }

  static void mark_missing(const std::vector<char>& missing, Index first, Rows& out) {
    for (std::size_t k = 0; k < missing.size(); ++k) {
      if (missing[k]) out.row(first + static_cast<Index>(k)).setConstant(std::numeric_limits<double>::quiet_NaN());
    }
  }

  double novelty_evidence(double sum) const {
    const double q = 1 - sum;
    return kernels_->scale * std::log(q < floor_ ? floor_ : (q > 1 ? 1 : q));
  }

  Framing framing_;
  Vector prior_;  // (S)
  double least_ratio_;
  double log_least_density_ratio_;
  double floor_;
  Vector shift_;  // (S)
  std::optional<PoolMember<KernelEstimate>> kernels_;
  std::optional<PoolMember<AdditiveTables>> additive_;
  std::optional<PoolMember<ClassGaussians>> gaussians_;
  std::shared_ptr<const NoveltyEvidence> novelty_;
  std::optional<ContextMembers> context_;
};

}  // namespace drhmm
