// Filtering and smoothing of chains in which every transition is possible and none is tiny, for a fixed number of
// states.
//
// In such a chain the smallest entry of a predicted message is at least 2^-20 of its sum, so that nothing is lost by
// rescaling only every few frames, by powers of two (level.hpp). The two directions of smoothing run interleaved, as
// each spends most of its time waiting for its own last result. They meet in the middle, so that the array of the
// posteriors holds all messages.
#pragma once

#include <algorithm>
#include <cmath>

#include "drhmm/interruption.hpp"
#include "drhmm/lanes.hpp"
#include "drhmm/recursion/row_weights.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// A chain of P states, the first S of them real; the others cannot be reached.
template <int P>
struct MixingChain {
  alignas(64) double forward[P][P] = {};   // row i: A_ij for all j
  alignas(64) double backward[P][P] = {};  // row j: A_ij for all i
  alignas(64) double start[P] = {};
  bool can_start_anywhere;

  MixingChain(const Matrix& transmat, const Vector& startprob) : can_start_anywhere(startprob.minCoeff() > 0) {
    for (Index i = 0; i < startprob.size(); ++i) {
      start[i] = startprob[i];
      for (Index j = 0; j < startprob.size(); ++j) forward[i][j] = backward[j][i] = transmat(i, j);
    }
  }
};

// A message in numbers, for few states.
template <int P, bool in_registers>
struct Message {
  double value[P];

  static Message from(const double* values) {
    Message result;
    for (int j = 0; j < P; ++j) result.value[j] = values[j];
    return result;
  }
  // result_j = sum_i value_i matrix_ij weights_j, with the weights in the matrix: they are not waited for.
  Message predicted_then_weighted(const double (&matrix)[P][P], const double* weights) const {
    Message result;
    for (int j = 0; j < P; ++j) result.value[j] = value[0] * (matrix[0][j] * weights[j]);
    for (int i = 1; i < P; ++i) {
      for (int j = 0; j < P; ++j) result.value[j] += value[i] * (matrix[i][j] * weights[j]);
    }
    return result;
  }
  // result_j = sum_i value_i weights_i matrix_ij
  Message weighted_then_predicted(const double (&matrix)[P][P], const double* weights) const {
    Message result;
    for (int j = 0; j < P; ++j) result.value[j] = value[0] * (weights[0] * matrix[0][j]);
    for (int i = 1; i < P; ++i) {
      for (int j = 0; j < P; ++j) result.value[j] += value[i] * (weights[i] * matrix[i][j]);
    }
    return result;
  }
  Message operator*(const Message& other) const {
    Message result;
    for (int j = 0; j < P; ++j) result.value[j] = value[j] * other.value[j];
    return result;
  }
  Message operator*(double factor) const {
    Message result;
    for (int j = 0; j < P; ++j) result.value[j] = value[j] * factor;
    return result;
  }
  double sum() const {
    double result = value[0];
    for (int j = 1; j < P; ++j) result += value[j];
    return result;
  }
  void to(double* values) const {
    for (int j = 0; j < P; ++j) values[j] = value[j];
  }
};

// A message in vector registers, for more states.
template <int P>
struct Message<P, true> {
  static constexpr int kWidth = kLanes<double>;
  static constexpr int kRegisters = P / kWidth;
  Lanes<double> value[kRegisters];

  static Message from(const double* values) {
    Message result;
    for (int r = 0; r < kRegisters; ++r) result.value[r] = load(values + r * kWidth);
    return result;
  }
  Message times(const double (&matrix)[P][P]) const {
    // Several sums at a time: one alone would wait for itself.
    constexpr int kSums = P >= 32 ? 2 : 4;
    alignas(64) double entries[P];
    to(entries);
    Lanes<double> sums[kSums][kRegisters] = {};
    for (int i = 0; i < P; i += kSums) {
      for (int k = 0; k < kSums; ++k) {
        for (int r = 0; r < kRegisters; ++r) sums[k][r] += entries[i + k] * load(matrix[i + k] + r * kWidth);
      }
    }
    Message result;
    for (int r = 0; r < kRegisters; ++r) {
      if constexpr (kSums == 4) {
        result.value[r] = (sums[0][r] + sums[1][r]) + (sums[2][r] + sums[3][r]);
      } else {
        result.value[r] = sums[0][r] + sums[1][r];
      }
    }
    return result;
  }
  Message predicted_then_weighted(const double (&matrix)[P][P], const double* weights) const {
    return times(matrix) * from(weights);
  }
  Message weighted_then_predicted(const double (&matrix)[P][P], const double* weights) const {
    return (*this * from(weights)).times(matrix);
  }
  Message operator*(const Message& other) const {
    Message result;
    for (int r = 0; r < kRegisters; ++r) result.value[r] = value[r] * other.value[r];
    return result;
  }
  Message operator*(double factor) const {
    Message result;
    for (int r = 0; r < kRegisters; ++r) result.value[r] = value[r] * factor;
    return result;
  }
  double sum() const {
    alignas(64) double entries[kWidth];
    Lanes<double> total = value[0];
    for (int r = 1; r < kRegisters; ++r) total += value[r];
    store<double>(total, entries);
    double result = entries[0];
    for (int j = 1; j < kWidth; ++j) result += entries[j];
    return result;
  }
  void to(double* values) const {
    for (int r = 0; r < kRegisters; ++r) store<double>(value[r], values + r * kWidth);
  }
};

// P states, of which n_states are real; exact says that all of them are.
template <int P, bool exact>
class MixingRecursion {
 public:
  using Vectors = Message<P, (P >= 8) && P % kLanes<double> == 0>;
  static constexpr Index kBlock = 8;  // frames between two rescalings

  // log_ratios, posteriors (T, S)
  MixingRecursion(const double* log_ratios, Index n_frames, Index n_states, const MixingChain<P>& chain,
                  double* posteriors)
      : log_ratios_(log_ratios), n_frames_(n_frames), rows_(n_states), chain_(chain), posteriors_(posteriors) {}

  // Both return false, with nothing of use written, if a row is neither ordinary evidence nor missing.
  bool filter() {
    if (!starts_where_evidence_is()) return false;
    alignas(64) double weights[kBlock * P] = {};
    Vectors message = Vectors::from(chain_.start) * level();
    for (Index first = 0; first < n_frames_; first += kBlock) {
      if (first % (16 * kFramesBetweenChecks) == 0) check_interruption();
      const Index count = std::min(kBlock, n_frames_ - first);
      if (!weights_of(first, count, weights)) return false;
      for (Index k = 0; k < count; ++k) {
        message = advanced(message, first + k, weights + k * P);
        write_normalized(message, first + k);
      }
      message = rescaled(message);
    }
    return true;
  }

  bool smooth() {
    if (!starts_where_evidence_is()) return false;
    Vectors forward = Vectors::from(chain_.start) * level();
    alignas(64) double levels[P];
    std::fill(levels, levels + P, level());
    Vectors backward = Vectors::from(levels);
    // Frame t from the front and frame T-1-t from the back; past the middle, each finds what the other one left.
    const Index half = n_frames_ / 2;
    const auto leave = [&](const Vectors& f, const Vectors& b, Index t, Index u) {
      write(f, t);
      write(b, u);
    };
    const auto meet = [&](const Vectors& f, const Vectors& b, Index t, Index) { write_normalized(f * b, t); };
    const auto find = [&](const Vectors& f, const Vectors& b, Index t, Index u) {
      write_normalized(f * read(t), t);
      write_normalized(b * read(u), u);
    };
    return both_ways(0, half, forward, backward, leave) && both_ways(half, n_frames_ - half, forward, backward, meet) &&
           both_ways(n_frames_ - half, n_frames_, forward, backward, find);
  }

 private:
  // Calls use(forward, backward, t, T-1-t) for t from begin to end.
  template <class Use>
  bool both_ways(Index begin, Index end, Vectors& forward, Vectors& backward, const Use& use) {
    alignas(64) double ahead[kBlock * P] = {}, behind[kBlock * P] = {};
    for (Index first = begin; first < end; first += kBlock) {
      if ((first - begin) % (16 * kFramesBetweenChecks) == 0) check_interruption();
      const Index count = std::min(kBlock, end - first);
      const Index last = n_frames_ - 1 - first;
      if (!weights_of(first, count, ahead) || !weights_of(last - count + 1, count, behind)) return false;
      Vectors f = forward, b = backward;
      for (Index k = 0; k < count; ++k) {
        f = advanced(f, first + k, ahead + k * P);
        use(f, b, first + k, last - k);
        b = b.weighted_then_predicted(chain_.backward, behind + (count - 1 - k) * P);
      }
      forward = rescaled(f);
      backward = rescaled(b);
    }
    return true;
  }

  // The forward message of frame t from that of the frame before, or from the start.
  Vectors advanced(const Vectors& message, Index t, const double* weights) const {
    if (t == 0) return message * Vectors::from(weights);
    return message.predicted_then_weighted(chain_.forward, weights);
  }

  Index n_states() const { return rows_.n_states(); }

  bool weights_of(Index first, Index count, double* weights) const {
    return rows_.weigh(log_ratios_ + first * n_states(), count, weights);
  }

  // Messages are rescaled to 2^100. Every frame takes them up by 2^12 to 2^kWeightShift, so that the product of a
  // forward and a backward one stays below 2^(2 * (100 + kBlock * kWeightShift)).
  static constexpr int kLevel = 100;
  static double level() { return std::ldexp(1.0, kLevel); }
  static Vectors rescaled(const Vectors& message) { return message * factor_to_level(message.sum(), kLevel); }

  // Otherwise the first message needs weights relative to the states that the chain can start in.
  bool starts_where_evidence_is() const {
    if (chain_.can_start_anywhere) return true;
    alignas(64) double weights[P] = {};
    if (!weights_of(0, 1, weights)) return false;
    return !starts_elsewhere((Vectors::from(chain_.start) * Vectors::from(weights)).sum() *
                             std::ldexp(1.0, -kWeightShift));
  }

  void write(const Vectors& message, Index t) {
    double* const row = posteriors_ + t * n_states();
    if constexpr (exact) {
      message.to(row);
    } else {
      alignas(64) double entries[P];
      message.to(entries);
      std::copy(entries, entries + n_states(), row);
    }
  }

  Vectors read(Index t) const {
    const double* const row = posteriors_ + t * n_states();
    if constexpr (exact) {
      return Vectors::from(row);
    } else {
      alignas(64) double entries[P] = {};
      std::copy(row, row + n_states(), entries);
      return Vectors::from(entries);
    }
  }

  void write_normalized(const Vectors& message, Index t) { write(message * (1 / message.sum()), t); }

  const double* log_ratios_;
  Index n_frames_;
  PaddedRows<P, exact> rows_;
  const MixingChain<P>& chain_;
  double* posteriors_;
};

}  // namespace drhmm
