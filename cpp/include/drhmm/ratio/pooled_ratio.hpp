// Log density ratios between states: the sum of kernel, additive and Gaussian estimates, limited and scaled.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "drhmm/features/frames.hpp"
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

// Log ratios of the context of a time step, and in batch, for `ahead_scale`, of the context kAhead time steps later.
struct ContextMembers {
  static constexpr Index kAhead = 4;

  std::shared_ptr<const Context> context;
  ContextRidge now;  // (S)
  double scale;
  std::optional<ContextRidge> both;  // (2 S) beside one another, with the estimates of states kAhead steps before
  double ahead_scale;
};

// log w_i(y) = sum_m kappa_m log max(q_i^(m)(y) / prior_i, least_ratio) + shift_i, up to a constant per row. Least
// squares alone is a pool of one member. Members of scale 0 are not evaluated.
class PooledRatio {
 public:
  // prior, shift (S). novelty: evidence for the unknown; if null, that is 1 minus the kernel estimates, at least floor,
  // as in the paper. trend: the evidence of frames with running means, if the framing has a span.
  PooledRatio(Framing framing, Vector prior, double least_ratio, double floor, Vector shift,
              std::optional<PoolMember<KernelEstimate>> kernels, std::optional<PoolMember<AdditiveTables>> additive,
              std::optional<PoolMember<ClassGaussians>> gaussians,
              std::shared_ptr<const NoveltyEvidence> novelty = nullptr,
              std::shared_ptr<const NoveltyEvidence> trend = nullptr,
              std::optional<ContextMembers> context = std::nullopt);

  const Framing& framing() const { return framing_; }
  // Computes the features of streams; null without context members.
  std::shared_ptr<const Context> context() const { return context_ ? context_->context : nullptr; }
  Index n_states() const { return prior_.size(); }
  bool has_kernels() const { return kernels_.has_value(); }
  bool sees_novelty() const { return has_kernels() || novelty_ != nullptr; }

  // The approximate number of multiplications per frame.
  Index work_per_frame() const { return work_per_frame_; }
  // The size of the scratch memory for n frames, in numbers.
  Index scratch_size(Index n) const;

  // out (n, S) <- theta_i^T phi(y) of the kernels, unclipped; NaN where a frame is missing.
  void estimates(const ConstRows& samples, const std::vector<Index>& lengths, int n_threads, bool single,
                 Rows out) const;

  // out (n, S), or (n, S + 1) with the evidence for novelty in the last column: that of NoveltyEvidence, beside known
  // states with sum_i prior_i w_i = 1, or the rest that the kernels leave: w_* = q_*^kappa, q_* = 1 - sum_i theta_i^T
  // phi(y) clipped to [floor, 1], with the kappa of the kernels.
  void log_ratios(const ConstRows& samples, const std::vector<Index>& lengths, int n_threads, bool single,
                  Rows out) const;

  // The same for given frames.
  void frame_log_ratios(const double* frames,    // (n, frame_size)
                        const char* missing,     // (n)
                        const double* features,  // (n, F) of the context, if there is one
                        Index n,
                        double* scratch,  // (scratch_size(n))
                        double* out,      // (n, columns)
                        Index n_columns) const;

 private:
  // Whether the unknown gets 1 minus the kernel estimates, as in the paper.
  bool leaves_novelty(Index n_columns) const { return n_columns > n_states() && !novelty_; }
  // Whether known states are compared. A single one beside the unknown has w_1 = 1, whatever its estimates.
  bool compares(Index n_columns) const { return n_states() > 1 || n_columns == 1 || !novelty_; }

  template <class Use>
  void for_each_block(const ConstRows& samples, const std::vector<Index>& lengths, int n_threads, const Use& use) const;
  const double* without_means(const double* frames, Index n, double* scratch) const;
  void log_novelty(const double* frames, const double* with_means, Index n, double* scratch, double* out) const;
  void kernel_sums(const double* frames, Index n, bool single, double* scratch, double* values) const;
  void add_logs(double* estimates, Index n, double scale, double* total) const;
  void add_context(const ContextReader& reader, Index first, Index count, double* values, double* total) const;
  void add_densities(const double* frames, Index n, double* values, double* scratch, double* total) const;
  void evidence(const double* with_means, const char* missing, Index n, bool single, double* total, double* out,
                Index n_columns) const;
  void known(const double* frames, Index n, bool single, double* total, double* out, Index n_columns) const;
  void beside_known(double log_evidence, double* evidence) const;
  void keep_within_reach(double* evidence) const;

  Framing framing_;
  Vector prior_;  // (S)
  double least_ratio_;
  double log_least_density_ratio_;
  double floor_;
  Vector shift_;  // (S)
  std::optional<PoolMember<KernelEstimate>> kernels_;
  std::optional<PoolMember<AdditiveTables>> additive_;
  std::optional<PoolMember<ClassGaussians>> gaussians_;
  std::shared_ptr<const NoveltyEvidence> novelty_, trend_;
  std::optional<ContextMembers> context_;
  Index work_per_frame_ = 0;
};

}  // namespace drhmm
