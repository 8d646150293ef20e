// What the past of a time step says: statistics over windows and convolutions, from the samples up to it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "drhmm/system/lanes.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

#if defined(DRHMM_HAS_VECTORS)
// As many bytes as there are numbers in a register.
using Bytes = std::uint8_t __attribute__((vector_size(kRegisterBytes / 8)));
#endif

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
  // Kernels of a dilation, and of all, with room for whole registers.
  static constexpr Index kPadded = (kPatterns + 7) / 8 * 8, kPlaces = kPadded * kDilations;
  // Where kernel k stands among those.
  static constexpr Index place(Index k) { return k / kPatterns * kPadded + k % kPatterns; }
  static constexpr Index kSpan = (kTaps - 1) * kSpacing.back() + 1;  // samples that one output looks at
  static constexpr Index kReach = kSpan + kPooled - 1;               // samples that pooled outputs look at

  // mean, inverse_scale (d), windows in ascending order, kinds 1..3, signs (d, kKernels), bias (kKernels)
  Context(Vector mean, Vector inverse_scale, std::vector<Index> windows, Index kinds, const ConstRows& signs,
          const Vector& bias)
      : mean_(std::move(mean)),
        inverse_scale_(std::move(inverse_scale)),
        windows_(std::move(windows)),
        kinds_(kinds),
        signs_(RowMatrix::Zero(signs.rows(), kPlaces)),
        bias_(Vector::Constant(kPlaces, std::numeric_limits<double>::infinity())),
        history_(std::max(kReach, windows_.empty() ? Index{1} : windows_.back() + 1)) {
    for (Index k = 0; k < kKernels; ++k) {
      signs_.col(place(k)) = signs.col(k);
      bias_[place(k)] = bias[k];
    }
    // The weights of a tap over the kernels of a dilation: -1, or 2 if it is one of the kernel's three.
    weights_.fill(0.0);
    Index pattern = 0;
    for (Index a = 0; a < kTaps; ++a) {
      for (Index b = a + 1; b < kTaps; ++b) {
        for (Index c = b + 1; c < kTaps; ++c, ++pattern) {
          for (Index tap = 0; tap < kTaps; ++tap) {
            // Tap 0 is the oldest.
            weights_[static_cast<std::size_t>(tap * kPadded + pattern)] = tap == a || tap == b || tap == c ? 2 : -1;
          }
        }
      }
    }
  }

  Index n_columns() const { return mean_.size(); }
  Index n_windows() const { return static_cast<Index>(windows_.size()); }
  Index n_statistics() const { return n_columns() * (1 + kinds_ * n_windows()); }
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

  // projected (kPlaces) <- the signed sums of a standardised sample (d) that the kernels read.
  void project(const double* sample, double* projected) const {
    for (Index k = 0; k < kPlaces; k += kLanes<double>) {
      Lanes<double> total{};
      for (Index j = 0; j < n_columns(); ++j) total += sample[j] * load<double>(signs_.data() + j * kPlaces + k);
      store<double>(total, projected + k);
    }
  }

  // Whether each kernel's output at one time step is above its bias, above (kPlaces). projected.taps(group) are the
  // places of nine samples, the oldest first, and projected.values(taps, place) what kernels place.. read of them.
  // Batch inference keeps projections, streams keep samples: the same operations, as rounding decides ties.
  template <class Projected>
#if defined(__GNUC__)
  __attribute__((noinline))
#endif
  void respond(const Projected& projected, std::uint8_t* above) const {
    constexpr Index kWidth = kLanes<double>;
    for (Index group = 0; group < kDilations; ++group) {
      const auto taps = projected.taps(group);
      for (Index k = 0; k < kPadded; k += kWidth) {
        const std::array<Lanes<double>, kTaps> values = projected.values(taps, group * kPadded + k);
        Lanes<double> output{};
        for (std::size_t tap = 0; tap < values.size(); ++tap) {
          output += load<double>(weights_.data() + static_cast<Index>(tap) * kPadded + k) * values[tap];
        }
        const Lanes<double> bias = load<double>(bias_.data() + group * kPadded + k);
        std::uint8_t* const out = above + group * kPadded + k;
#if defined(DRHMM_HAS_VECTORS)
        const Bytes larger = __builtin_convertvector(output > bias, Bytes) & std::uint8_t{1};
        std::memcpy(out, &larger, sizeof larger);
#else
        *out = output > bias;
#endif
      }
    }
  }

  // values[tap] <- the signed sums that kernels place.. read of nine samples x[tap] (d): as `project`, bit for bit.
  std::array<Lanes<double>, kTaps> project(const std::array<const double*, kTaps>& x, Index place) const {
    std::array<Lanes<double>, kTaps> values{};
    const double* sign = signs_.data() + place;
    for (Index j = 0; j < n_columns(); ++j, sign += kPlaces) {
      const Lanes<double> signs = load<double>(sign);
      for (std::size_t tap = 0; tap < values.size(); ++tap) values[tap] += x[tap][j] * signs;
    }
    return values;
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
        for (Index j = 0; j < n_columns(); ++j) projected += x[j] * signs_(j, place(k));
        out[k] += weights_[static_cast<std::size_t>(tap * kPadded + k % kPatterns)] * projected;
      }
    }
  }

  // out (n_statistics) <- the sample and its statistics. scratch: (3 d).
  template <class Before>
  void statistics(const Before& sample_before, Vector& scratch, Eigen::ArrayXd& logs, double* out) const {
    const Index d = n_columns();
    const double* const newest = sample_before(0);
    out = std::copy(newest, newest + d, out);
    // Sums from the newest sample back, of values about it, so that no digits are lost far from zero.
    scratch.setZero();
    double* const DRHMM_RESTRICT sum = scratch.data();
    double* const DRHMM_RESTRICT squares = sum + d;
    double* const DRHMM_RESTRICT change = squares + d;
    const double* value = newest;
    Index k = 0;
    double* log = logs.data();
    for (Index number = 0; number < n_windows(); ++number) {
      const Index w = windows_[static_cast<std::size_t>(number)];
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
      const double share = 1 / static_cast<double>(w);
      for (Index j = 0; j < d; ++j) {
        const double mean = sum[j] * share;
        out[number * kinds_ * d + j] = newest[j] + mean;
        log[j] = std::sqrt(std::max(squares[j] * share - mean * mean, 0.0)) + kLeast;
        log[d + j] = change[j] * share + kLeast;
      }
      log += 2 * d;
    }
    if (kinds_ == 1) return;
    // All logarithms at once, in memory of their own: vectors and single numbers of them may differ in the last bit.
    logs = logs.log().eval();
    for (Index number = 0; number < n_windows(); ++number) {
      std::copy_n(logs.data() + 2 * number * d, (kinds_ - 1) * d, out + (number * kinds_ + 1) * d);
    }
  }

 private:
  static constexpr double kLeast = 1e-3;

  Vector mean_, inverse_scale_;  // (d)
  std::vector<Index> windows_;
  Index kinds_;
  RowMatrix signs_;  // (d, kPlaces)
  Vector bias_;      // (kPlaces)
  Index history_;
  std::array<double, static_cast<std::size_t>(kTaps* kPadded)> weights_;  // (kTaps, kPadded)
};

// The past of one sequence: the last samples, and which kernels were above their bias at the last time steps.
class ContextState {
  // The sample k steps before the time step `back` steps before the newest.
  struct Before {
    const ContextState& state;
    Index history, n_columns, back;

    const double* operator()(Index k) const {
      Index place = state.newest_ - back - k;
      if (place < 0) place += history;
      return state.samples_.data() + place * n_columns;
    }
  };

  Before before(const Context& context, Index back) const {
    return {*this, context.history(), context.n_columns(), back};
  }

  // What kernels read at the time step `back` steps before the newest, from the samples or from kept projections.
  struct FromSamples {
    const Context& context;
    Before before;

    std::array<const double*, Context::kTaps> taps(Index group) const { return nine(group, before); }
    auto values(const std::array<const double*, Context::kTaps>& x, Index place) const {
      return context.project(x, place);
    }
  };
  struct FromProjections {
    const ContextState& state;

    std::array<const double*, Context::kTaps> taps(Index group) const {
      return nine(group, [this](Index k) {
        const Index place = state.newest_projection_ - k;
        return state.projections_.data() + (place < 0 ? place + Context::kSpan : place) * Context::kPlaces;
      });
    }
    auto values(const std::array<const double*, Context::kTaps>& rows, Index place) const {
      std::array<Lanes<double>, Context::kTaps> loaded;
      for (std::size_t tap = 0; tap < loaded.size(); ++tap) loaded[tap] = load<double>(rows[tap] + place);
      return loaded;
    }
  };
  template <class At>
  static std::array<const double*, Context::kTaps> nine(Index group, const At& at) {
    std::array<const double*, Context::kTaps> places;
    for (Index tap = 0; tap < Context::kTaps; ++tap) {
      places[static_cast<std::size_t>(tap)] =
          at((Context::kTaps - 1 - tap) * Context::kSpacing[static_cast<std::size_t>(group)]);
    }
    return places;
  }

 public:
  // keeps_projections: 70 KB more, for work on many time steps.
  explicit ContextState(const Context& context, bool keeps_projections = false)
      : samples_(static_cast<std::size_t>(context.history() * context.n_columns()), 0.0),
        last_(static_cast<std::size_t>(context.n_columns()), 0.0),
        above_(static_cast<std::size_t>(Context::kPooled * Context::kPlaces), 0),
        scratch_(3 * context.n_columns()),
        logs_(2 * context.n_columns() * context.n_windows()),
        projections_(keeps_projections ? static_cast<std::size_t>(Context::kSpan * Context::kPlaces) : 0) {}

  void clear() {
    n_ = 0;
    std::fill(last_.begin(), last_.end(), 0.0);
  }

  // The last values (d) before a part of a sequence; NaN where a column has none yet.
  void remember(const Context& context, const double* values) {
    const std::vector<double> unknown(last_.size(), 0.0);
    context.standardize(values, unknown.data(), last_.data());
  }

  // The next sample (d) of the sequence, dt steps after the last one. A gap begins a new past. until: time steps until
  // features are asked for.
  void push(const Context& context, const double* sample, std::int64_t dt, Index until = 0) {
    const Index d = context.n_columns(), h = context.history();
    if (dt > 1) clear();
    newest_ = n_ == 0 ? 0 : (newest_ + 1) % h;
    double* const target = samples_.data() + newest_ * d;
    context.standardize(sample, last_.data(), target);
    std::copy(target, target + d, last_.begin());
    if (n_ == 0) {
      for (Index k = 1; k < h; ++k) std::copy(last_.begin(), last_.end(), samples_.begin() + k * d);
    }
    if (!projections_.empty() && until < Context::kReach) keep_projection(context, target);
    if (until < Context::kPooled) respond(context, 0, n_ == 0 ? Context::kPooled : 1);
    if (n_ < h) ++n_;
  }

  // out (context.size()) <- the features of the newest time step.
  void features(const Context& context, double* out) {
    context.statistics(before(context, 0), scratch_, logs_, out);
    out += context.n_statistics();
    std::array<const std::uint8_t*, Context::kPooled> above;
    for (std::size_t k = 0; k < above.size(); ++k) above[k] = above_.data() + k * Context::kPlaces;
    std::array<std::uint8_t, Context::kPlaces> counts;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      counts[k] = static_cast<std::uint8_t>(above[0][k] + above[1][k] + above[2][k] + above[3][k] + above[4][k]);
    }
    for (Index group = 0; group < Context::kDilations; ++group) {
      const std::uint8_t* const own = counts.data() + group * Context::kPadded;
      for (Index k = 0; k < Context::kPatterns; ++k) out[k] = own[k] / static_cast<double>(Context::kPooled);
      out += Context::kPatterns;
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
  void keep_projection(const Context& context, const double* sample) {
    newest_projection_ = n_ == 0 ? 0 : (newest_projection_ + 1) % Context::kSpan;
    double* const row = projections_.data() + newest_projection_ * Context::kPlaces;
    context.project(sample, row);
    if (n_ > 0) return;
    for (Index k = 1; k < Context::kSpan; ++k) std::copy_n(row, Context::kPlaces, row + k * Context::kPlaces);
  }

  // Stores the responses of one time step in the next places.
  void respond(const Context& context, Index back, Index n_places) {
    std::uint8_t* const first = above_.data() + next_ * Context::kPlaces;
    if (projections_.empty()) {
      context.respond(FromSamples{context, before(context, back)}, first);
    } else {
      context.respond(FromProjections{*this}, first);
    }
    for (Index k = 1; k < n_places; ++k) {
      std::copy_n(first, Context::kPlaces, above_.data() + ((next_ + k) % Context::kPooled) * Context::kPlaces);
    }
    next_ = (next_ + n_places) % Context::kPooled;
  }

  std::vector<double> samples_;      // (history, d), a ring
  std::vector<double> last_;         // (d)
  std::vector<std::uint8_t> above_;  // (kPooled, kPlaces), a ring
  Vector scratch_;                   // (3 d)
  Eigen::ArrayXd logs_;              // (windows, 2 d)
  std::vector<double> projections_;  // (kSpan, kPlaces), a ring; empty if samples are projected when they are read
  Index newest_ = 0, newest_projection_ = 0, next_ = 0, n_ = 0;
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
