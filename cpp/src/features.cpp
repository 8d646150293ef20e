// Exponentials, and frames and their context, read block by block.
#include <algorithm>
#include <cmath>
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

void ContextReader::read(Index first, Index count, RowMatrix& features, bool outputs) const {
  features.resize(count, outputs ? Context::kKernels : context_.size());
  ContextState state(context_, count > Context::kReach);
  auto sequence = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin());
  Index t = first;
  while (t < first + count) {
    const Index begin = sequence == 0 ? 0 : ends_[sequence - 1];
    const Index start = std::max(begin, t - context_.history() + 1);
    state.clear();
    if (start > begin) remember(begin, start, state);
    for (Index s = start; s < std::min(ends_[sequence], first + count); ++s) {
      state.push(context_, samples_.row(s).data(), 1, std::max<Index>(first - s, 0));
      if (s < first) continue;
      if (outputs) {
        state.outputs(context_, features.row(s - first).data());
      } else {
        state.features(context_, features.row(s - first).data());
      }
    }
    t = ends_[sequence++];
  }
}

void ContextReader::remember(Index begin, Index start, ContextState& state) const {
  std::vector<double> values(static_cast<std::size_t>(context_.n_columns()), std::numeric_limits<double>::quiet_NaN());
  for (Index j = 0; j < context_.n_columns(); ++j) {
    for (Index t = start - 1; t >= begin; --t) {
      if (std::isnan(samples_(t, j))) continue;
      values[static_cast<std::size_t>(j)] = samples_(t, j);
      break;
    }
  }
  state.remember(context_, values.data());
}

}  // namespace drhmm
