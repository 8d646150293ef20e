// From samples to frames: standardise; frame t is the samples t-window+1..t of its sequence, and if there is a span,
// the mean of the samples t-span+1..t, or NaN if one of these is missing.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "drhmm/types.hpp"

namespace drhmm {

// The definition of a frame, the same in batch and in a stream.
struct Framing {
  Vector mean;           // (d)
  Vector inverse_scale;  // (d)
  Index window = 1;
  Index span = 0;

  Index n_columns() const { return mean.size(); }
  Index window_size() const { return window * mean.size(); }
  Index frame_size() const { return window_size() + (span > 0 ? mean.size() : 0); }
  // Samples that a frame depends on.
  Index reach() const { return std::max(window, span); }
};

// Reads the frames of concatenated sequences block by block, so that it never stores all windows.
class FrameReader {
 public:
  FrameReader(const Framing& framing, const ConstRows& samples, const std::vector<Index>& lengths)
      : framing_(framing), samples_(samples) {
    Index begin = 0;
    for (const Index length : lengths) {
      ends_.push_back(begin += length);
    }
    if (begin != samples.rows()) throw std::invalid_argument("lengths do not sum to the number of samples");
  }

  Index n_frames() const { return samples_.rows(); }

  // frames (count, frame_size) <- frames first..first+count-1, oldest sample first.
  // A frame is missing if its window is incomplete or holds a NaN. It is marked and filled with zeros.
  void read(Index first, Index count, RowMatrix& frames, std::vector<char>& missing) const;

 private:
  const Framing& framing_;
  ConstRows samples_;
  std::vector<Index> ends_;
};

}  // namespace drhmm
