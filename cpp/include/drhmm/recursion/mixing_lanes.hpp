// Smoothing of mixing chains with few states, several stretches of frames at a time: lanes of vector
// registers are stretches of one long sequence, or short sequences of equal length.
//
// A stretch of a longer sequence does not know with which message it begins. The product of its step matrices,
// P = prod_t A diag(w_t), says how any message comes through it: one pass computes P of all stretches, P connects them,
// and the second pass starts each where it should.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "drhmm/lanes.hpp"
#include "drhmm/recursion/exponential.hpp"
#include "drhmm/recursion/mixing.hpp"

namespace drhmm {

template <int S>
class MixingLanes {
 public:
  using Value = Lanes<double>;
  static constexpr Index kWidth = kLanes<double>;

  explicit MixingLanes(const MixingChain<S>& chain) : chain_(chain) {}

  // kWidth sequences of n_frames each, one after the other in log_ratios and posteriors, (kWidth * n_frames, S).
  // Returns false, with nothing of use written, if a row is neither ordinary evidence nor missing.
  bool sequences(const double* log_ratios, Index n_frames, double* posteriors) {
    allocate(n_frames);
    if (!prepare(log_ratios, weights_.get())) return false;
    Value message[S];
    for (int i = 0; i < S; ++i) message[i] = chain_.start[i] * weight(0, i);
    keep(0, message);
    forward(1, message);
    alignas(64) double ones[S * kWidth];
    std::fill(ones, ones + S * kWidth, 1.0);
    backward(ones, posteriors);
    return true;
  }

  // One sequence of more than kWidth frames: the first frame, groups of kWidth stretches, and the few that are left.
  bool sequence(const double* log_ratios, Index n_frames, double* posteriors) {
    constexpr Index kStretch = 256;  // frames, at most: a group stays in the cache
    const Index n_groups = (n_frames - 1 + kWidth * kStretch - 1) / (kWidth * kStretch);
    allocate((n_frames - 1) / (kWidth * n_groups));
    const Index group_size = kWidth * n_frames_;
    const Index n_rest = n_frames - 1 - n_groups * group_size;
    const double* const rest = log_ratios + (n_frames - n_rest) * S;
    double* const rest_posteriors = posteriors + (n_frames - n_rest) * S;
    std::vector<double> edge(static_cast<std::size_t>((n_rest + 1) * S));  // weights of the first and the last frames
    double* const rest_weights = edge.data() + S;
    if (!weights_of(log_ratios, 1, edge.data()) || !weights_of(rest, n_rest, rest_weights)) return false;

    // The matrix of every stretch. The weights wait where the posteriors of their group will be.
    std::vector<double> products(static_cast<std::size_t>(n_groups * S * S * kWidth));
    for (Index g = 0; g < n_groups; ++g) {
      double* const waiting = posteriors + (1 + g * group_size) * S;
      if (!prepare(log_ratios + (1 + g * group_size) * S, waiting)) return false;
      multiply_all(waiting, products.data() + g * S * S * kWidth);
    }
    // Messages before every stretch, from the front to the back.
    std::vector<double> before(static_cast<std::size_t>(n_groups * S * kWidth)), after(before.size());
    double first[S], message[S];
    for (int i = 0; i < S; ++i) first[i] = message[i] = chain_.start[i] * edge[static_cast<std::size_t>(i)];
    for (Index stretch = 0; stretch < n_groups * kWidth; ++stretch) {
      const double* const product = products.data() + stretch / kWidth * S * S * kWidth + stretch % kWidth;
      double next[S] = {};
      for (int i = 0; i < S; ++i) {
        before[place(stretch, i)] = message[i];
        for (int j = 0; j < S; ++j) next[j] += message[i] * product[(i * S + j) * kWidth];
      }
      rescale(next, message);
    }
    for (Index k = 0; k < n_rest; ++k) {
      double next[S] = {};
      for (int i = 0; i < S; ++i) {
        for (int j = 0; j < S; ++j) next[j] += message[i] * chain_.forward[i][j] * rest_weights[k * S + j];
      }
      rescale(next, message);
      std::copy(message, message + S, rest_posteriors + k * S);
    }
    // Messages after every stretch, from the back to the front.
    std::fill(message, message + S, 1.0);
    for (Index k = n_rest - 1; k >= 0; --k) {
      double next[S] = {};
      for (int j = 0; j < S; ++j) {
        const double v = message[j] * rest_weights[k * S + j];
        for (int i = 0; i < S; ++i) next[i] += chain_.forward[i][j] * v;
      }
      combine(message, rest_posteriors + k * S);
      rescale(next, message);
    }
    for (Index stretch = n_groups * kWidth - 1; stretch >= 0; --stretch) {
      const double* const product = products.data() + stretch / kWidth * S * S * kWidth + stretch % kWidth;
      double next[S] = {};
      for (int i = 0; i < S; ++i) {
        after[place(stretch, i)] = message[i];
        for (int j = 0; j < S; ++j) next[i] += product[(i * S + j) * kWidth] * message[j];
      }
      rescale(next, message);
    }
    std::copy(first, first + S, posteriors);
    combine(message, posteriors);

    for (Index g = 0; g < n_groups; ++g) {
      double* const target = posteriors + (1 + g * group_size) * S;
      std::copy(target, target + group_size * S, weights_.get());
      Value begin[S];
      for (int i = 0; i < S; ++i) begin[i] = load(before.data() + (g * S + i) * kWidth);
      forward(0, begin);
      backward(after.data() + g * S * kWidth, target);
    }
    return true;
  }

 private:
  static constexpr Index kBlock = 16;  // frames between two rescalings, as in MixingRecursion

  // The place of entry i of a message of a stretch among those of all groups, (groups, S, kWidth).
  static std::size_t place(Index stretch, int i) {
    return static_cast<std::size_t>((stretch / kWidth * S + i) * kWidth + stretch % kWidth);
  }

  static void rescale(const double* from, double* to) {
    double sum = 0;
    for (int i = 0; i < S; ++i) sum += from[i];
    const double scale = std::ldexp(1.0, -std::ilogb(sum));
    for (int i = 0; i < S; ++i) to[i] = from[i] * scale;
  }

  // Divides every lane by the power of two of its sum.
  template <int N>
  static void rescale(Value (&values)[N]) {
    using Integer = Register<double>::Integer;
    Value sum = values[0];
    for (int i = 1; i < N; ++i) sum += values[i];
    Integer bits;
    std::memcpy(&bits, &sum, sizeof bits);
    bits = (std::int64_t{2046} << 52) - (bits & (std::int64_t{0x7FF} << 52));
    Value scale;
    std::memcpy(&scale, &bits, sizeof scale);
    for (int i = 0; i < N; ++i) values[i] *= scale;
  }

  // row <- row .* message, normalised.
  static void combine(const double* message, double* row) {
    double sum = 0;
    for (int i = 0; i < S; ++i) sum += row[i] *= message[i];
    for (int i = 0; i < S; ++i) row[i] /= sum;
  }

  // Log ratios of rows less the largest of each, with a stride between the entries of a row; false for an unusual row.
  static bool differences(const double* row, double* to, Index stride) {
    double pivot = row[0], sum = row[0];
    for (int i = 1; i < S; ++i) {
      pivot = row[i] > pivot ? row[i] : pivot;
      sum += row[i];
    }
    if (!(pivot - pivot == 0) || sum != sum) {
      for (int i = 0; i < S; ++i) {
        if (!std::isnan(row[i])) return false;
        to[i * stride] = 0;
      }
      return true;
    }
    for (int i = 0; i < S; ++i) to[i * stride] = row[i] - pivot;
    return true;
  }

  static bool weights_of(const double* rows, Index count, double* weights) {
    for (Index k = 0; k < count; ++k) {
      if (!differences(rows + k * S, weights + k * S, 1)) return false;
    }
    exponentials(weights, count * S);
    return true;
  }

  void allocate(Index n_frames) {
    n_frames_ = n_frames;
    const auto size = static_cast<std::size_t>(n_frames * S * kWidth);
    weights_.reset(new double[size]);
    messages_.reset(new double[size]);
  }

  // weights (n_frames, S, kWidth) <- those of kWidth * n_frames rows, lanes n_frames rows apart.
  bool prepare(const double* log_ratios, double* weights) const {
    for (Index first = 0; first < n_frames_; first += kBlock) {
      const Index count = std::min(kBlock, n_frames_ - first);
      double* const block = weights + first * S * kWidth;
      for (Index c = 0; c < kWidth; ++c) {
        for (Index k = 0; k < count; ++k) {
          const double* const row = log_ratios + (c * n_frames_ + first + k) * S;
          if (!differences(row, block + k * S * kWidth + c, kWidth)) return false;
        }
      }
      exponentials(block, count * S * kWidth);
    }
    return true;
  }

  Value weight(Index t, int i) const { return load(weights_.get() + (t * S + i) * kWidth); }
  void keep(Index t, const Value* message) {
    for (int i = 0; i < S; ++i) store<double>(message[i], messages_.get() + (t * S + i) * kWidth);
  }

  // products (S, S, kWidth) <- prod_t A diag(w_t) of every lane, up to a power of two.
  void multiply_all(const double* weights, double* products) const {
    Value product[S * S], next[S * S];
    for (int i = 0; i < S * S; ++i) product[i] = all(i % (S + 1) == 0 ? 1.0 : 0.0);
    for (Index t = 0; t < n_frames_; ++t) {
      for (int j = 0; j < S; ++j) {
        const Value w = load(weights + (t * S + j) * kWidth);
        Value column[S];  // A_ij w_j
        for (int i = 0; i < S; ++i) column[i] = chain_.forward[i][j] * w;
        for (int a = 0; a < S; ++a) {
          Value sum = product[a * S] * column[0];
          for (int i = 1; i < S; ++i) sum += product[a * S + i] * column[i];
          next[a * S + j] = sum;
        }
      }
      if (t % kBlock == kBlock - 1) rescale(next);
      for (int i = 0; i < S * S; ++i) product[i] = next[i];
    }
    for (int i = 0; i < S * S; ++i) store<double>(product[i], products + i * kWidth);
  }

  // Forward messages of frames begin.., from the message before them.
  void forward(Index begin, Value (&message)[S]) {
    for (Index t = begin; t < n_frames_; ++t) {
      Value next[S];
      for (int j = 0; j < S; ++j) {
        Value sum = message[0] * chain_.forward[0][j];
        for (int i = 1; i < S; ++i) sum += message[i] * chain_.forward[i][j];
        next[j] = sum * weight(t, j);
      }
      if (t % kBlock == kBlock - 1) rescale(next);
      for (int j = 0; j < S; ++j) message[j] = next[j];
      keep(t, message);
    }
  }

  // posteriors <- those of all frames, lanes n_frames rows apart, from the messages after the last ones, (S, kWidth).
  void backward(const double* after, double* posteriors) const {
    Value message[S];
    for (int i = 0; i < S; ++i) message[i] = load(after + i * kWidth);
    for (Index t = n_frames_ - 1; t >= 0; --t) {
      Value combined[S];
      for (int i = 0; i < S; ++i) combined[i] = load(messages_.get() + (t * S + i) * kWidth) * message[i];
      Value sum = combined[0];
      for (int i = 1; i < S; ++i) sum += combined[i];
      const Value factor = 1.0 / sum;
      alignas(64) double entries[S][kWidth];
      for (int i = 0; i < S; ++i) store<double>(combined[i] * factor, entries[i]);
      for (Index c = 0; c < kWidth; ++c) {
        for (int i = 0; i < S; ++i) posteriors[(c * n_frames_ + t) * S + i] = entries[i][c];
      }
      for (int j = 0; j < S; ++j) message[j] *= weight(t, j);
      Value next[S];
      for (int i = 0; i < S; ++i) {
        Value total = message[0] * chain_.forward[i][0];
        for (int j = 1; j < S; ++j) total += message[j] * chain_.forward[i][j];
        next[i] = total;
      }
      if (t % kBlock == 0) rescale(next);
      for (int i = 0; i < S; ++i) message[i] = next[i];
    }
  }

  const MixingChain<S>& chain_;
  Index n_frames_ = 0;
  // Not initialised: every number is written before it is read.
  std::unique_ptr<double[]> weights_;   // (n_frames, S, kWidth)
  std::unique_ptr<double[]> messages_;  // (n_frames, S, kWidth) forward messages
};

}  // namespace drhmm
