// The context of a time step: statistics over windows and convolutions of the samples up to it.
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

// The features of a time step, from the standardised samples z up to it:
//   z (d), the sample itself;
//   for each window w: the mean (d), log(sd + .001) (d) and log(mean |difference| + .001) (d) of the last w samples,
//   or only the first `kinds` of these; of at most 200 columns, evenly spread;
//   for each of 3 x 84 kernels: the share of its last 5 outputs above its bias. A kernel has nine taps, 1, 2 or 4
//   samples apart (its dilation), three with the weight 2 and six with -1, on a signed sum of at most 9 columns.
// The first sample of a sequence is repeated before it. A NaN is replaced by the last value of its column, or by the
// training mean before there is one.
// z is limited to +-32 and rounded to multiples of 2^-17, or larger ones for windows above 128. Then all sums are
// exact, in double and in 32-bit integers: in any order, in batch and in streams, they are the same.
class Context {
 public:
  static constexpr Index kTaps = 9, kPooled = 5, kPatterns = 84, kDilations = 3, kKernels = kPatterns * kDilations;
  static constexpr Index kMostSummed = 9, kMostColumns = 200;  // columns of a kernel, and those with statistics
  static constexpr std::array<Index, kDilations> kSpacing{1, 2, 4};
  // Kernels of a dilation, and of all, padded to whole registers.
  static constexpr Index kPadded = (kPatterns + 7) / 8 * 8, kPlaces = kPadded * kDilations;
  // The place of kernel k among these.
  static constexpr Index place(Index k) { return k / kPatterns * kPadded + k % kPatterns; }
  static constexpr Index kSpan = (kTaps - 1) * kSpacing.back() + 1;  // samples behind one output
  static constexpr Index kReach = kSpan + kPooled - 1;               // samples behind pooled outputs
  static constexpr Index kRows = 1024;                               // time steps in a block of a batch
  static constexpr double kShare = 1.0 / kPooled;

  // mean, inverse_scale (d), windows in ascending order, kinds 1..3, signs (d, kKernels), bias (kKernels)
  Context(Vector mean, Vector inverse_scale, std::vector<Index> windows, Index kinds, const ConstRows& signs,
          const Vector& bias)
      : mean_(std::move(mean)),
        inverse_scale_(std::move(inverse_scale)),
        windows_(std::move(windows)),
        kinds_(kinds),
        bias_(Vector::Constant(kPlaces, std::numeric_limits<double>::infinity())),
        history_(std::max(kReach, windows_.empty() ? Index{1} : windows_.back() + 1)),
        units_(kFinest) {
    for (Index w = 128; !windows_.empty() && w < windows_.back(); w *= 4) units_ /= 2;
    begins_.push_back(0);
    for (Index k = 0; k < kKernels; ++k) {
      bias_[place(k)] = bias[k];
      const double limit = std::numeric_limits<std::int32_t>::max();
      thresholds_.push_back(static_cast<std::int32_t>(std::min(std::max(std::floor(bias[k] * units_), -limit), limit)));
      for (Index j = 0; j < signs.rows(); ++j) {
        if (signs(j, k) != 0) summed_.push_back({j, signs(j, k) > 0 ? 1 : -1});
      }
      begins_.push_back(static_cast<Index>(summed_.size()));
    }
    RowMatrix placed = RowMatrix::Zero(signs.rows(), kPlaces);
    for (Index k = 0; k < kKernels; ++k) placed.col(place(k)) = signs.col(k);
    touched_begins_.push_back(0);
    for (Index first = 0; first < kPlaces; first += kWidth) {
      for (Index j = 0; j < signs.rows(); ++j) {
        const auto own = placed.row(j).segment(first, kWidth);
        if ((own.array() == 0).all()) continue;
        touched_.push_back(j);
        signs_.insert(signs_.end(), own.data(), own.data() + kWidth);
      }
      touched_begins_.push_back(static_cast<Index>(touched_.size()));
    }
    // The weights of a tap in the kernels of a dilation: 2 if it is one of the kernel's three, or -1.
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
  Index n_kept() const { return std::min(n_columns(), kMostColumns); }
  Index n_statistics() const { return n_kept() * (1 + kinds_ * n_windows()); }
  Index size() const { return n_statistics() + kKernels; }
  // Samples, the newest included, that features depend on.
  Index history() const { return history_; }
  const std::vector<Index>& windows() const { return windows_; }
  Index kinds() const { return kinds_; }
  Index work_per_frame() const { return 8 * (static_cast<Index>(summed_.size()) + kTaps * kKernels + n_statistics()); }

  // out (d) <- the standardised sample (d); NaN becomes the last value, last (d).
  void standardize(const double* sample, const double* last, double* out) const {
    constexpr double kWhole = 0x1.8p52;  // the last digit of numbers in this range stands for 1
    for (Index j = 0; j < n_columns(); ++j) {
      const double z = std::min(std::max((sample[j] - mean_[j]) * inverse_scale_[j], -kFarthest), kFarthest);
      out[j] = std::isnan(sample[j]) ? last[j] : (z * units_ + kWhole - kWhole) / units_;
    }
  }

  // Below, samples are standardised ones in memory after history() - 1 others, with room for a register behind them.

  // above (kPlaces) <- whether each kernel's output at one time step is above its bias.
  void respond(const double* newest, std::uint8_t* above) const {
    for (Index place = 0; place < kPlaces; place += kWidth) {
      const auto group = static_cast<std::size_t>(place / kPadded);
      std::array<Lanes<double>, kTaps> taps{};
      const auto number = static_cast<std::size_t>(place / kWidth);
      const double* const oldest = newest - (kTaps - 1) * kSpacing[group] * n_columns();
      for (Index k = touched_begins_[number]; k < touched_begins_[number + 1]; ++k) {
        const Lanes<double> signs = load<double>(signs_.data() + k * kWidth);
        const double* x = oldest + touched_[static_cast<std::size_t>(k)];
        for (auto& tap : taps) {
          tap += *x * signs;
          x += kSpacing[group] * n_columns();
        }
      }
      std::array<Lanes<double>, kTaps> weights;
      for (std::size_t tap = 0; tap < weights.size(); ++tap) {
        weights[tap] = load<double>(weights_.data() + static_cast<Index>(tap) * kPadded + place % kPadded);
      }
      const Lanes<double> bias = load<double>(bias_.data() + place), output = weighted(taps.data(), 1, weights);
#if defined(DRHMM_HAS_VECTORS)
      const Register<double>::Bytes larger =
          __builtin_convertvector(output > bias, Register<double>::Bytes) & std::uint8_t{1};
      std::memcpy(above + place, &larger, sizeof larger);
#else
      above[place] = output > bias;
#endif
    }
  }

  // Time steps in a register: n of them are cut into as many segments. Numbers of time step k are in lane
  // k / n_steps(n) of register k % n_steps(n).
  static constexpr Index kSegments = kLanes<std::int32_t>;
  static Index n_steps(Index n) { return (n + kSegments - 1) / kSegments; }
  // Bytes from the counts of one kernel to the next: an odd number of cache lines, which spreads them over the cache.
  static Index count_stride(Index n) { return ((n_steps(n) * kSegments + 63) / 64 | 1) * 64; }

  // counts (kKernels, count_stride) <- how many of the last 5 outputs are above the bias at n <= kRows time steps.
  void counts(const double* samples, Index n, std::vector<std::uint8_t>& counts) const;

  // outputs (n, kKernels) <- the outputs of the kernels, for learning their biases.
  void outputs(const double* samples, Index n, double* outputs) const;

  // out (n, stride), with room for a register, <- n samples and their statistics (n_statistics).
  void statistics(const double* samples, Index n, Eigen::ArrayXd& scratch, double* out, Index stride) const;

 private:
  static constexpr double kLeast = 1e-3;
  static constexpr Index kWidth = kLanes<double>;

  static constexpr double kFarthest = 32, kFinest = 1 << 17;

  struct Summed {
    Index column;
    std::int32_t sign;
  };

  // The sum of nine projections, the oldest first, `step` registers apart.
  static DRHMM_INLINE Lanes<double> weighted(const Lanes<double>* taps, Index step,
                                             const std::array<Lanes<double>, kTaps>& weights) {
    Lanes<double> output{};
    for (const auto& weight : weights) {
      output += weight * *taps;
      taps += step;
    }
    return output;
  }

  // Calls of_kernel(kernel)(s, thrice, nine) with the sums of three taps, times 3, and of all nine taps, in units, at
  // registers s >= 1 - kPooled of n time steps. Their difference is the output.
  template <class Use>
  void convolve(const double* samples, Index n, const Use& of_kernel) const;

  Vector mean_, inverse_scale_;  // (d)
  std::vector<Index> windows_;
  Index kinds_;
  // Per register of kernels, the columns that any of them sums, and their signs (kWidth).
  std::vector<Index> touched_begins_, touched_;
  std::vector<double> signs_;
  Vector bias_;  // (kPlaces)
  Index history_;
  double units_;
  std::vector<Index> begins_;             // (kKernels + 1) the places of each kernel in summed_
  std::vector<Summed> summed_;            // columns and signs
  std::vector<std::int32_t> thresholds_;  // (kKernels) biases in units
  std::array<double, static_cast<std::size_t>(kTaps* kPadded)> weights_;  // (kTaps, kPadded)
};

// The past of one sequence: the last samples, and which kernels were above their bias at the last time steps.
class ContextState {
 public:
  explicit ContextState(const Context& context)
      : samples_(static_cast<std::size_t>((context.history() + kSlack) * context.n_columns() + kLanes<double>), 0.0),
        last_(static_cast<std::size_t>(context.n_columns()), 0.0),
        above_(static_cast<std::size_t>(Context::kPooled * Context::kPlaces), 0),
        row_(static_cast<std::size_t>(context.size() + kLanes<double>)),
        end_(context.history()) {}

  void clear() {
    n_ = 0;
    std::fill(last_.begin(), last_.end(), 0.0);
  }

  // The next sample (d) of the sequence, dt steps after the last one. A gap begins a new past.
  void push(const Context& context, const double* sample, std::int64_t dt) {
    const Index d = context.n_columns(), h = context.history();
    if (dt > 1) clear();
    if (end_ == h + kSlack) {
      std::copy(samples_.begin() + (end_ - h) * d, samples_.begin() + end_ * d, samples_.begin());
      end_ = h;
    }
    double* const target = samples_.data() + end_++ * d;
    context.standardize(sample, last_.data(), target);
    std::copy(target, target + d, last_.begin());
    if (n_ == 0) {
      for (Index k = 1; k < h; ++k) std::copy(last_.begin(), last_.end(), target - k * d);
    }
    respond(context, 0, n_ == 0 ? Context::kPooled : 1);
    if (n_ < h) ++n_;
  }

  // out (context.size()) <- the features of the newest time step.
  void features(const Context& context, double* out) {
    context.statistics(newest(context), 1, scratch_, row_.data(), 0);
    out = std::copy_n(row_.data(), context.n_statistics(), out);
    const std::uint8_t* const above = above_.data();
    std::array<std::uint8_t, Context::kPlaces> counts;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      constexpr std::size_t kNext = Context::kPlaces;
      const int count =
          above[k] + above[k + kNext] + above[k + 2 * kNext] + above[k + 3 * kNext] + above[k + 4 * kNext];
      counts[k] = static_cast<std::uint8_t>(count);
    }
    for (Index group = 0; group < Context::kDilations; ++group) {
      const std::uint8_t* const own = counts.data() + group * Context::kPadded;
      for (Index k = 0; k < Context::kPatterns; ++k) out[k] = own[k] * Context::kShare;
      out += Context::kPatterns;
    }
  }

  // For snapshots: the standardised samples, oldest first, (history, d); zeros before the first sample.
  Index n_samples() const { return n_; }
  std::vector<double> past(const Context& context) const {
    const Index size = context.history() * context.n_columns();
    if (n_ == 0) return std::vector<double>(static_cast<std::size_t>(size), 0.0);
    const auto end = samples_.begin() + end_ * context.n_columns();
    return std::vector<double>(end - size, end);
  }
  const std::vector<double>& last() const { return last_; }
  void restore(const Context& context, const double* past, Index n, const double* last) {
    end_ = context.history();
    std::copy_n(past, end_ * context.n_columns(), samples_.begin());
    last_.assign(last, last + static_cast<std::ptrdiff_t>(last_.size()));
    n_ = n;
    for (Index back = Context::kPooled - 1; back >= 0; --back) respond(context, back, 1);
  }

 private:
  static constexpr Index kSlack = 32;  // samples between moves to the front

  const double* newest(const Context& context) const { return samples_.data() + (end_ - 1) * context.n_columns(); }

  // Stores the responses of one time step in the next places.
  void respond(const Context& context, Index back, Index n_places) {
    std::uint8_t* const first = above_.data() + next_ * Context::kPlaces;
    context.respond(newest(context) - back * context.n_columns(), first);
    for (Index k = 1; k < n_places; ++k) {
      std::copy_n(first, Context::kPlaces, above_.data() + ((next_ + k) % Context::kPooled) * Context::kPlaces);
    }
    next_ = (next_ + n_places) % Context::kPooled;
  }

  std::vector<double> samples_;      // (history + kSlack, d), the last ones before end_
  std::vector<double> last_;         // (d)
  std::vector<std::uint8_t> above_;  // (kPooled, kPlaces), a ring
  Eigen::ArrayXd scratch_;
  std::vector<double> row_;
  Index end_, next_ = 0, n_ = 0;
};

// Reads the context of concatenated sequences block by block.
class ContextReader {
 public:
  ContextReader(const Context& context, const ConstRows& samples, const std::vector<Index>& lengths)
      : context_(context), samples_(samples) {
    Index begin = 0;
    for (const Index length : lengths) ends_.push_back(begin += length);
  }

  // Calls use(k, n, samples) for pieces of one sequence, time steps first+k..first+k+n-1, n <= kRows.
  template <class Use>
  void for_each_piece(Index first, Index count, const Use& use) const {
    const Index d = context_.n_columns(), before = context_.history() - 1;
    std::vector<double> samples;
    auto sequence = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin());
    for (Index t = first, n = 0; t < first + count; t += n) {
      while (t >= ends_[sequence]) ++sequence;
      n = std::min({ends_[sequence], first + count, t + Context::kRows}) - t;
      samples.resize(static_cast<std::size_t>((before + n) * d + kLanes<double>));
      fill(sequence == 0 ? 0 : ends_[sequence - 1], t, n, samples.data() + before * d);
      use(t - first, n, samples.data() + before * d);
    }
  }

  // features (count, size) <- those of time steps first..first+count-1; outputs: of the kernels instead, (count, 252).
  void read(Index first, Index count, RowMatrix& features, bool outputs = false) const;

  // The last time step of the sequence that t belongs to.
  Index last_of(Index t) const { return *std::upper_bound(ends_.begin(), ends_.end(), t) - 1; }

 private:
  // now (n, d) <- the standardised samples from t on, and the history before them, of the sequence from `begin` on.
  void fill(Index begin, Index t, Index n, double* now) const;

  // The last standardised values (d) of all columns before `start`; 0 where a column has none.
  std::vector<double> remembered(Index begin, Index start) const;

  const Context& context_;
  ConstRows samples_;
  std::vector<Index> ends_;
};

}  // namespace drhmm
