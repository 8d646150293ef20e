// The last samples of one live sequence. Makes the same frames as FrameReader, one sample at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "drhmm/features/frames.hpp"

namespace drhmm {

class SampleWindow {
 public:
  explicit SampleWindow(const Framing& framing)
      : past_(static_cast<std::size_t>((framing.reach() - 1) * framing.n_columns())) {}

  // frame (frame_size) <- the frame of a sample (d) dt steps after the last one. Stores nothing.
  // Returns false, and zeros, if the window is incomplete or the sample holds a NaN.
  bool frame(const Framing& framing, const double* sample, std::int64_t dt, double* frame) const {
    const Index d = framing.n_columns();
    const bool complete = n_past_ >= framing.window - 1 && (dt == 1 || framing.window == 1) && !has_nan(sample, d);
    if (!complete) {
      std::fill(frame, frame + framing.frame_size(), 0.0);
      return false;
    }
    double* const newest = std::copy(past_.end() - (framing.window - 1) * d, past_.end(), frame);
    standardize(framing, sample, newest);
    if (framing.span > 0) mean(framing, newest, dt, newest + d);
    return true;
  }

  void push(const Framing& framing, const double* sample, std::int64_t dt) {
    if (past_.empty()) return;
    const Index d = framing.n_columns();
    if (dt > 1) n_past_ = 0;
    if (has_nan(sample, d)) {
      n_past_ = 0;
      return;
    }
    std::copy(past_.begin() + d, past_.end(), past_.begin());
    standardize(framing, sample, past_.data() + past_.size() - static_cast<std::size_t>(d));
    n_past_ = std::min(n_past_ + 1, framing.reach() - 1);
  }

  void clear() { n_past_ = 0; }

  // For snapshots: the standardised past samples, oldest first. The last n_past of them are contiguous.
  const std::vector<double>& past() const { return past_; }
  Index n_past() const { return n_past_; }
  void restore(const double* past, Index n_past) {
    std::copy(past, past + past_.size(), past_.begin());
    n_past_ = n_past;
  }

 private:
  // out (d) <- the mean over the span of the last samples, `newest` (d) the last of them.
  void mean(const Framing& framing, const double* newest, std::int64_t dt, double* out) const {
    const Index d = framing.n_columns();
    const bool complete = n_past_ >= framing.span - 1 && (dt == 1 || framing.span == 1);
    std::fill_n(out, d, complete ? 0.0 : std::numeric_limits<double>::quiet_NaN());
    if (!complete) return;
    const double* sample = past_.data() + past_.size() - static_cast<std::size_t>((framing.span - 1) * d);
    for (Index k = 1; k < framing.span; ++k) {
      for (Index j = 0; j < d; ++j) out[j] += *sample++;
    }
    for (Index j = 0; j < d; ++j) out[j] = (out[j] + newest[j]) / static_cast<double>(framing.span);
  }
  static bool has_nan(const double* sample, Index d) {
    return std::any_of(sample, sample + d, [](double value) { return std::isnan(value); });
  }
  static void standardize(const Framing& framing, const double* sample, double* out) {
    for (Index j = 0; j < framing.n_columns(); ++j) out[j] = (sample[j] - framing.mean[j]) * framing.inverse_scale[j];
  }

  std::vector<double> past_;  // (reach - 1) * d
  Index n_past_ = 0;
};

}  // namespace drhmm
