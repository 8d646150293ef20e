// The last samples of one live sequence. Makes the same frames as FrameReader, one sample at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "drhmm/features/frames.hpp"

namespace drhmm {

class SampleWindow {
 public:
  explicit SampleWindow(const Framing& framing)
      : past_(static_cast<std::size_t>((framing.window - 1) * framing.n_columns())) {}

  // frame (window * d) <- the frame of a sample (d) dt steps after the last one. Stores nothing.
  // Returns false, and zeros, if the window is incomplete or the sample holds a NaN.
  bool frame(const Framing& framing, const double* sample, std::int64_t dt, double* frame) const {
    const Index d = framing.n_columns();
    const bool complete = n_past_ >= framing.window - 1 && (dt == 1 || framing.window == 1) && !has_nan(sample, d);
    if (!complete) {
      std::fill(frame, frame + framing.frame_size(), 0.0);
      return false;
    }
    standardize(framing, sample, std::copy(past_.begin(), past_.end(), frame));
    return true;
  }

  void push(const Framing& framing, const double* sample, std::int64_t dt) {
    if (framing.window == 1) return;
    const Index d = framing.n_columns();
    if (dt > 1) n_past_ = 0;
    if (has_nan(sample, d)) {
      n_past_ = 0;
      return;
    }
    std::copy(past_.begin() + d, past_.end(), past_.begin());
    standardize(framing, sample, past_.data() + past_.size() - static_cast<std::size_t>(d));
    n_past_ = std::min(n_past_ + 1, framing.window - 1);
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
  static bool has_nan(const double* sample, Index d) {
    return std::any_of(sample, sample + d, [](double value) { return std::isnan(value); });
  }
  static void standardize(const Framing& framing, const double* sample, double* out) {
    for (Index j = 0; j < framing.n_columns(); ++j) out[j] = (sample[j] - framing.mean[j]) * framing.inverse_scale[j];
  }

  std::vector<double> past_;  // (window - 1) * d
  Index n_past_ = 0;
};

}  // namespace drhmm
