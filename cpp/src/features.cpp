// Exponentials, and frames and their context, read block by block.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "drhmm/features/context.hpp"
#include "drhmm/features/frames.hpp"
#include "drhmm/system/exponential.hpp"

namespace drhmm {

void many_exponentials(double* values, Index n) { exponentials(values, n); }

void FrameReader::read(Index first, Index count, RowMatrix& frames, std::vector<char>& missing) const {
  const Index d = framing_.n_columns();
  frames.setZero(count, framing_.frame_size());
  missing.assign(static_cast<std::size_t>(count), 0);
  auto end = std::upper_bound(ends_.begin(), ends_.end(), first);
  for (Index k = 0; k < count; ++k) {
    const Index t = first + k;
    while (t >= *end) ++end;
    const Index begin = end == ends_.begin() ? 0 : *(end - 1);
    bool complete = t - begin + 1 >= framing_.window;
    for (Index lag = 0; lag < framing_.window && complete; ++lag) {
      const auto sample = samples_.row(t - framing_.window + 1 + lag);
      complete = !sample.array().isNaN().any();
      frames.row(k).segment(lag * d, d) =
          (sample - framing_.mean.transpose()).cwiseProduct(framing_.inverse_scale.transpose());
    }
    if (!complete) {
      frames.row(k).setZero();
      missing[static_cast<std::size_t>(k)] = 1;
    }
  }
}

template <class Use>
void Context::convolve(const double* newest, Index n, Index same, const Use& use) const {
  const Index d = n_columns();
  std::array<Lanes<double>, kRows + kReach + kTogether> projected;
  std::array<Lanes<double>, kTaps> weights;
  for (Index place = 0; place < kPlaces; place += kWidth) {
    const Index group = place / kPadded, pattern = place % kPadded;
    const Index spacing = kSpacing[static_cast<std::size_t>(group)], before = (kTaps - 1) * spacing;
    const Index first = std::max(-before, same);
    Lanes<double>* const own = projected.data() + before;
    for (Index k = first; k < n; k += kTogether) {
      std::array<Lanes<double>, kTogether> totals{};
      const double* sample = newest + (k - n + 1) * d;
      const double* sign = signs_.data() + place;
      for (Index j = 0; j < d; ++j, ++sample, sign += kPlaces) {
        const Lanes<double> signs = load<double>(sign);
        const double* x = sample;
        for (auto& total : totals) {
          total += *x * signs;
          x += d;
        }
      }
      std::copy(totals.begin(), totals.end(), own + k);
    }
    std::fill(own - before, own + first, own[first]);
    for (std::size_t tap = 0; tap < weights.size(); ++tap) {
      weights[tap] = load<double>(weights_.data() + static_cast<Index>(tap) * kPadded + pattern);
    }
    const Place where{place, group * kPatterns + pattern, std::min(kWidth, kPatterns - pattern)};
    for (Index k = 0; k < n; ++k) use(where, k, weighted(own + k - before, spacing, weights));
  }
}

void Context::shares(const double* newest, Index n, Index same, double* shares, Index stride) const {
  constexpr Index kBefore = kPooled - 1;
  static_assert(kPooled == 5);
  Lanes<double> a{}, b{}, c{}, d{}, oldest{}, count{};  // whether the last outputs were above the bias, and their count
  convolve(newest, n + kBefore, same + kBefore, [&](const Place& where, Index k, const Lanes<double>& output) {
    const Lanes<double> above = output > load<double>(bias_.data() + where.place) ? all(1.0) : all(0.0);
    count += above - oldest;
    if (k >= kBefore) where.write(count * kShare, shares + (k - kBefore) * stride);
    oldest = a;
    a = b;
    b = c;
    c = d;
    d = above;
  });
}

void Context::outputs(const double* newest, Index n, Index same, double* outputs, Index stride) const {
  convolve(newest, n, same, [&](const Place& where, Index k, const Lanes<double>& output) {
    where.write(output, outputs + k * stride);
  });
}

void Context::statistics(const double* newest, Eigen::ArrayXd& scratch, double* out) const {
  const Index d = n_columns(), padded = padded_columns(), n = n_windows() * padded;
  double *const variances = scratch.data(), *const changes = variances + n, *const means = changes + n;
  for (Index j = 0; j < d; j += kWidth) {
    // Sums differences from the newest sample, backwards, so that values far from zero keep their digits.
    const Lanes<double> origin = load<double>(newest + j);
    Lanes<double> value = origin, sum{}, squares{}, change{};
    const double* earlier = newest + j;
    Index k = 0, place = j;
    for (const Index w : windows_) {
      for (; k < w; ++k) {
        earlier -= d;
        const Lanes<double> difference = value - origin, before = load<double>(earlier);
        sum += difference;
        squares += difference * difference;
        change -= negative(value - before);
        value = before;
      }
      const double share = 1 / static_cast<double>(w);
      const Lanes<double> mean = sum * share;
      store<double>(squares * share - mean * mean, variances + place);
      store<double>(change * share, changes + place);
      store<double>(origin + mean, means + place);
      place += padded;
    }
  }
  // All logarithms at once, in whole registers: those of single numbers may differ in the last bit.
  if (kinds_ > 1) {
    scratch.head(n) = (scratch.head(n).max(0.0).sqrt() + kLeast).log();
    scratch.segment(n, n) = (scratch.segment(n, n) + kLeast).log();
  }
  // In ascending order, because registers write beyond their place.
  const auto write = [&](const double* values) {
    for (Index j = 0; j < d; j += kWidth) store<double>(load<double>(values + j), out + j);
    out += d;
  };
  write(newest);
  for (Index place = 0; place < n; place += padded) {
    write(means + place);
    if (kinds_ > 1) write(variances + place);
    if (kinds_ > 2) write(changes + place);
  }
}

void ContextReader::read(Index first, Index count, RowMatrix& features, bool outputs) const {
  const Index d = context_.n_columns(), width = outputs ? Context::kKernels : context_.size();
  features.resize(count, width);
  Eigen::ArrayXd scratch(context_.scratch_size());
  std::vector<double> samples;
  auto sequence = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin());
  for (Index t = first, n = 0; t < first + count; t += n) {
    while (t >= ends_[sequence]) ++sequence;
    n = std::min({ends_[sequence], first + count, t + Context::kRows}) - t;
    const Index begin = sequence == 0 ? 0 : ends_[sequence - 1];
    const Index before = context_.history() - 1, start = std::max(begin, t - before);
    samples.resize(static_cast<std::size_t>((before + n + Context::kTogether) * d + kLanes<double>));
    double* const now = samples.data() + before * d;
    std::vector<double> last = remembered(begin, start);
    for (Index s = start; s < t + n; ++s) {
      double* const sample = now + (s - t) * d;
      context_.standardize(samples_.row(s).data(), last.data(), sample);
      std::copy_n(sample, d, last.begin());
    }
    for (Index s = start - 1; s >= t - before; --s) std::copy_n(now + (start - t) * d, d, now + (s - t) * d);
    double *const out = features.row(t - first).data(), *const newest = now + (n - 1) * d;
    if (outputs) {
      context_.outputs(newest, n, start - t, out, width);
      continue;
    }
    for (Index k = 0; k < n; ++k) context_.statistics(now + k * d, scratch, out + k * width);
    context_.shares(newest, n, start - t, out + context_.n_statistics(), width);
  }
}

std::vector<double> ContextReader::remembered(Index begin, Index start) const {
  std::vector<double> values(static_cast<std::size_t>(context_.n_columns()), std::numeric_limits<double>::quiet_NaN());
  for (Index j = 0; j < context_.n_columns(); ++j) {
    for (Index t = start - 1; t >= begin; --t) {
      if (std::isnan(samples_(t, j))) continue;
      values[static_cast<std::size_t>(j)] = samples_(t, j);
      break;
    }
  }
  const std::vector<double> unknown(values.size(), 0.0);
  context_.standardize(values.data(), unknown.data(), values.data());
  return values;
}

}  // namespace drhmm
