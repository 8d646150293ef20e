// From samples to frames: standardise; frame t is the samples t-window+1..t of its sequence.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "drhmm/types.hpp"

namespace drhmm {

// How one frame is made; the same in batch and in a stream.
struct Framing {
  Vector mean;           // (d)
  Vector inverse_scale;  // (d)
  Index window = 1;

  Index n_columns() const { return mean.size(); }
  Index frame_size() const { return window * mean.size(); }
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

  // frames (count, window * d) <- frames first..first+count-1, oldest sample first.
  // A frame is missing if its window is incomplete or holds a NaN. It is marked and filled with zeros.
  void read(Index first, Index count, RowMatrix& frames, std::vector<char>& missing) const {
    frames.setZero(count, framing_.frame_size());
    missing.assign(static_cast<std::size_t>(count), 0);
    const Index d = framing_.n_columns();
    std::size_t sequence = sequence_of(first);
    for (Index k = 0; k < count; ++k) {
      const Index t = first + k;
      while (t >= ends_[sequence]) ++sequence;
      const Index begin = sequence == 0 ? 0 : ends_[sequence - 1];
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

 private:
  std::size_t sequence_of(Index t) const {
    return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), t) - ends_.begin());
  }

  const Framing& framing_;
  ConstRows samples_;
  std::vector<Index> ends_;
};

}  // namespace drhmm
