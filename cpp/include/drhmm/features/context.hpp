// What the past of a time step says: statistics over windows and convolutions, from the samples up to it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "drhmm/types.hpp"

namespace drhmm {

// The features of a time step, from the standardised samples z up to it:
//   z (d), the sample itself;
//   for each window w: the mean (d), log(sd + .001) (d) and log(mean |difference| + .001) (d) of the last w samples,
//   or only the first `kinds` of these;
//   for each of 3 x 84 kernels: the share of its last 5 outputs above its bias. A kernel has nine taps, dilation 1, 2
//   or 4 samples apart, three with the weight 2 and six with -1, on a signed sum of some columns.
// Before the first sample of a sequence stands the first sample, as often as needed. A NaN is replaced by the last
// value of its column, and by the mean of training before there is one.
class Context {
 public:
  static constexpr Index kTaps = 9, kPooled = 5, kPatterns = 84, kDilations = 3, kKernels = kPatterns * kDilations;
  static constexpr std::array<Index, kDilations> kSpacing{1, 2, 4};
  static constexpr Index kReach = (kTaps - 1) * kSpacing.back() + kPooled;  // samples that convolutions look at

  // mean, inverse_scale (d), windows in ascending order, kinds 1..3, signs (d, kKernels), bias (kKernels)
  Context(Vector mean, Vector inverse_scale, std::vector<Index> windows, Index kinds, const ConstRows& signs,
          Vector bias)
      : mean_(std::move(mean)),
        inverse_scale_(std::move(inverse_scale)),
        windows_(std::move(windows)),
        kinds_(kinds),
        signs_(signs),
        bias_(std::move(bias)),
        history_(std::max(kReach, windows_.empty() ? Index{1} : windows_.back() + 1)) {
    // The weights of a tap over the kernels of a dilation: -1, or 2 if it is one of the kernel's three.
    Index pattern = 0;
    for (Index a = 0; a < kTaps; ++a) {
      for (Index b = a + 1; b < kTaps; ++b) {
        for (Index c = b + 1; c < kTaps; ++c, ++pattern) {
          for (Index tap = 0; tap < kTaps; ++tap) {
            // Tap 0 is the oldest.
            weights_[static_cast<std::size_t>(tap * kPatterns + pattern)] = tap == a || tap == b || tap == c ? 2 : -1;
          }
        }
      }
    }
  }

  Index n_columns() const { return mean_.size(); }
  Index n_statistics() const { return n_columns() * (1 + kinds_ * static_cast<Index>(windows_.size())); }
  Index size() const { return n_statistics() + kKernels; }
  // Samples, the newest included, that features depend on.
  Index history() const { return history_; }
  const std::vector<Index>& windows() const { return windows_; }
  Index kinds() const { return kinds_; }
  // The approximate number of multiplications per time step.
  Index work_per_frame() const { return kTaps * kKernels * (n_columns() + 1) + 2 * history_ * n_columns(); }

  // out (d) <- the standardised sample (d); NaN becomes the last value, last (d).
  void standardize(const double* sample, const double* last, double* out) const {
    for (Index j = 0; j < n_columns(); ++j) {
      out[j] = std::isnan(sample[j]) ? last[j] : (sample[j] - mean_[j]) * inverse_scale_[j];
    }
  }

  // Whether each kernel's output at one time step is above its bias, above (kKernels). sample_before(k) (d) is the
  // standardised sample k steps before it. Both batch and streams run this code, as rounding decides ties.
  template <class Before>
#if defined(__GNUC__)
  __attribute__((noinline))
#endif
  void respond(const Before& sample_before, std::uint8_t* above) const {
    std::array<double, kPatterns> output, projected;
    for (Index group = 0; group < kDilations; ++group) {
      output.fill(0.0);
      for (Index tap = 0; tap < kTaps; ++tap) {
        const double* const x = sample_before((kTaps - 1 - tap) * kSpacing[static_cast<std::size_t>(group)]);
        projected.fill(0.0);
        for (Index j = 0; j < n_columns(); ++j) {
          const double* const sign = signs_.data() + j * kKernels + group * kPatterns;
          for (std::size_t k = 0; k < projected.size(); ++k) projected[k] += x[j] * sign[k];
        }
        const double* const weight = weights_.data() + tap * kPatterns;
        for (std::size_t k = 0; k < output.size(); ++k) output[k] += weight[k] * projected[k];
      }
      const double* const bias = bias_.data() + group * kPatterns;
      for (std::size_t k = 0; k < output.size(); ++k)
        above[group * kPatterns + static_cast<Index>(k)] = output[k] > bias[k];
    }
  }

  // out <- the outputs of the kernels at one time step, for learning their biases.
  template <class Before>
  void outputs(const Before& sample_before, double* out) const {
    for (Index k = 0; k < kKernels; ++k) {
      const Index group = k / kPatterns;
      out[k] = 0;
      for (Index tap = 0; tap < kTaps; ++tap) {
        const double* const x = sample_before((kTaps - 1 - tap) * kSpacing[static_cast<std::size_t>(group)]);
        double projected = 0;
        for (Index j = 0; j < n_columns(); ++j) projected += x[j] * signs_(j, k);
        out[k] += weights_[static_cast<std::size_t>(tap * kPatterns + k % kPatterns)] * projected;
      }
    }
  }

  // out (n_statistics) <- the sample and its statistics.
  template <class Before>
  void statistics(const Before& sample_before, double* out) const {
    const Index d = n_columns();
    const double* const newest = sample_before(0);
    out = std::copy(newest, newest + d, out);
    // Sums from the newest sample back, of values about it, so that no digits are lost far from zero.
    std::vector<double> sums(static_cast<std::size_t>(3 * d), 0.0);
    double *const sum = sums.data(), *const squares = sum + d, *const change = squares + d;
    const double* value = newest;
    Index k = 0;
    for (const Index w : windows_) {
      for (; k < w; ++k) {
        const double* const earlier = sample_before(k + 1);
        for (Index j = 0; j < d; ++j) {
          const double difference = value[j] - newest[j];
          sum[j] += difference;
          squares[j] += difference * difference;
          change[j] += std::abs(value[j] - earlier[j]);
        }
        value = earlier;
      }
      const double n = static_cast<double>(w);
      for (Index j = 0; j < d; ++j) {
        const double mean = sum[j] / n;
        out[j] = newest[j] + mean;
        if (kinds_ > 1) out[d + j] = std::log(std::sqrt(std::max(squares[j] / n - mean * mean, 0.0)) + kLeast);
        if (kinds_ > 2) out[2 * d + j] = std::log(change[j] / n + kLeast);
      }
      out += kinds_ * d;
    }
  }

 private:
  static constexpr double kLeast = 1e-3;

  Vector mean_, inverse_scale_;  // (d)
  std::vector<Index> windows_;
  Index kinds_;
  RowMatrix signs_;  // (d, kKernels)
  Vector bias_;      // (kKernels)
  Index history_;
  std::array<double, static_cast<std::size_t>(kTaps* kPatterns)> weights_;
};

// The past of one sequence: the last samples, and which kernels were above their bias at the last time steps.
class ContextState {
  // The sample k steps before the time step `back` steps before the newest.
  struct Before {
    const ContextState& state;
    Index history, n_columns, back;

    const double* operator()(Index k) const {
      return state.samples_.data() + ((state.newest_ - back - k + 2 * history) % history) * n_columns;
    }
  };

  Before before(const Context& context, Index back) const {
    return {*this, context.history(), context.n_columns(), back};
  }

 public:
  explicit ContextState(const Context& context)
      : samples_(static_cast<std::size_t>(context.history() * context.n_columns()), 0.0),
        last_(static_cast<std::size_t>(context.n_columns()), 0.0),
        above_(static_cast<std::size_t>(Context::kPooled * Context::kKernels), 0) {}

  void clear() {
    n_ = 0;
    std::fill(last_.begin(), last_.end(), 0.0);
  }

  // The last values (d) before a part of a sequence; NaN where a column has none yet.
  void remember(const Context& context, const double* values) {
    const std::vector<double> unknown(last_.size(), 0.0);
    context.standardize(values, unknown.data(), last_.data());
  }

  // The next sample (d) of the sequence, dt steps after the last one. A gap begins a new past. responds: whether the
  // features of this time step, or of one of the kPooled - 1 after it, are asked for.
  void push(const Context& context, const double* sample, std::int64_t dt, bool responds = true) {
    const Index d = context.n_columns(), h = context.history();
    if (dt > 1) clear();
    newest_ = n_ == 0 ? 0 : (newest_ + 1) % h;
    double* const target = samples_.data() + newest_ * d;
    context.standardize(sample, last_.data(), target);
    std::copy(target, target + d, last_.begin());
    if (n_ == 0) {
      for (Index k = 1; k < h; ++k) std::copy(last_.begin(), last_.end(), samples_.begin() + k * d);
    }
    if (responds) respond(context, 0, n_ == 0 ? Context::kPooled : 1);
    if (n_ < h) ++n_;
  }

  // out (context.size()) <- the features of the newest time step.
  void features(const Context& context, double* out) const {
    context.statistics(before(context, 0), out);
    out += context.n_statistics();
    const std::uint8_t* const above = above_.data();
    for (Index k = 0; k < Context::kKernels; ++k) {
      std::uint8_t count = 0;
      for (Index pooled = 0; pooled < Context::kPooled; ++pooled) {
        count = static_cast<std::uint8_t>(count + above[pooled * Context::kKernels + k]);
      }
      out[k] = count / static_cast<double>(Context::kPooled);
    }
  }

  // out (kKernels) <- the outputs of the kernels at the newest time step.
  void outputs(const Context& context, double* out) const { context.outputs(before(context, 0), out); }

  // For snapshots: the standardised samples, oldest first, (history, d); all zeros, and 0 of them, before the first.
  Index n_samples() const { return n_; }
  std::vector<double> past(const Context& context) const {
    std::vector<double> ordered;
    if (n_ == 0) return std::vector<double>(samples_.size(), 0.0);
    for (Index k = context.history() - 1; k >= 0; --k) {
      const double* const sample = before(context, 0)(k);
      ordered.insert(ordered.end(), sample, sample + context.n_columns());
    }
    return ordered;
  }
  const std::vector<double>& last() const { return last_; }
  void restore(const Context& context, const double* past, Index n, const double* last) {
    samples_.assign(past, past + static_cast<std::ptrdiff_t>(samples_.size()));
    last_.assign(last, last + static_cast<std::ptrdiff_t>(last_.size()));
    newest_ = context.history() - 1;
    n_ = n;
    for (Index back = Context::kPooled - 1; back >= 0; --back) respond(context, back, 1);
  }

 private:
  // Stores the responses of one time step in the next places.
  void respond(const Context& context, Index back, Index n_places) {
    std::uint8_t* const first = above_.data() + next_ * Context::kKernels;
    context.respond(before(context, back), first);
    for (Index k = 1; k < n_places; ++k) {
      std::copy_n(first, Context::kKernels, above_.data() + ((next_ + k) % Context::kPooled) * Context::kKernels);
    }
    next_ = (next_ + n_places) % Context::kPooled;
  }

  std::vector<double> samples_;      // (history, d), a ring
  std::vector<double> last_;         // (d)
  std::vector<std::uint8_t> above_;  // (kPooled, kKernels), a ring
  Index newest_ = 0, next_ = 0, n_ = 0;
};

// Reads the features of concatenated sequences block by block.
class ContextReader {
 public:
  ContextReader(const Context& context, const ConstRows& samples, const std::vector<Index>& lengths)
      : context_(context), samples_(samples) {
    Index begin = 0;
    for (const Index length : lengths) ends_.push_back(begin += length);
  }

  // features (count, size) <- those of time steps first..first+count-1; outputs: of the kernels instead, (count, 252).
  void read(Index first, Index count, RowMatrix& features, bool outputs = false) const;

  // The last time step of the sequence that t belongs to.
  Index last_of(Index t) const { return *std::upper_bound(ends_.begin(), ends_.end(), t) - 1; }

 private:
  // The last values of all columns before `start`.
  void remember(Index begin, Index start, ContextState& state) const;

  const Context& context_;
  ConstRows samples_;
  std::vector<Index> ends_;
};

}  // namespace drhmm
