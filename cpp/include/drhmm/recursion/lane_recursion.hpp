// Filtering and smoothing of mixing chains with few states, several stretches of frames at a time: each lane of a
// vector register walks through a stretch of its own.
//
// In a mixing chain the smallest entry of a predicted message is at least 2^-20 of its sum, so that one power of two
// per frame, taken from the frame before and therefore never waited for, keeps all messages within range (level.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "drhmm/exponential.hpp"
#include "drhmm/lanes.hpp"
#include "drhmm/recursion/kept_memory.hpp"
#include "drhmm/recursion/level.hpp"
#include "drhmm/recursion/stretch.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// One number per state and lane.
template <int S>
struct LaneMessage {
  Lanes<double> value[S];

  static LaneMessage ones() {
    LaneMessage result;
    for (int i = 0; i < S; ++i) result.value[i] = all(1.0);
    return result;
  }
  // result_j = sum_i value_i matrix_ij
  DRHMM_INLINE LaneMessage times(const double (&matrix)[S][S]) const {
    LaneMessage result;
    for (int j = 0; j < S; ++j) {
      result.value[j] = value[0] * matrix[0][j];
      for (int i = 1; i < S; ++i) result.value[j] += value[i] * matrix[i][j];
    }
    return result;
  }
  DRHMM_INLINE LaneMessage times(const LaneMessage& other) const {
    LaneMessage result;
    for (int i = 0; i < S; ++i) result.value[i] = value[i] * other.value[i];
    return result;
  }
  DRHMM_INLINE LaneMessage times(const Lanes<double>& factor) const {
    LaneMessage result;
    for (int i = 0; i < S; ++i) result.value[i] = value[i] * factor;
    return result;
  }
  DRHMM_INLINE Lanes<double> sum() const {
    Lanes<double> result = value[0];
    for (int i = 1; i < S; ++i) result += value[i];
    return result;
  }
  DRHMM_INLINE LaneMessage normalized() const { return times(1.0 / sum()); }
  // 2^(level - n) for a sum in [2^n, 2^(n+1)).
  template <int level>
  DRHMM_INLINE Lanes<double> factor_to_level() const {
    const Lanes<double> total = sum();
    typename Register<double>::Unsigned bits;  // the compiler may add the constants first, beyond a signed number
    std::memcpy(&bits, &total, sizeof bits);
    bits = (std::uint64_t{2046} << 52) - (bits & (std::uint64_t{0x7FF} << 52)) + (std::uint64_t{level} << 52);
    Lanes<double> power;
    std::memcpy(&power, &bits, sizeof power);
    return power;
  }
  // Lanes of another message where their bits are set.
  DRHMM_INLINE LaneMessage replaced(std::uint8_t bits, const LaneMessage& other) const {
    alignas(64) double flags[kLanes<double>];
    for (int lane = 0; lane < kLanes<double>; ++lane) flags[lane] = bits >> lane & 1;
    const Lanes<double> is_set = load(flags);
    LaneMessage result;
    for (int i = 0; i < S; ++i) result.value[i] = is_set > 0.5 ? other.value[i] : value[i];
    return result;
  }
  std::vector<double> of_lane(Index lane) const {
    std::vector<double> result(S);
    for (int i = 0; i < S; ++i) result[static_cast<std::size_t>(i)] = lane_of(value[i], lane);
    return result;
  }
};

// The posteriors of a group of kWidth stretches, and what they saw at their edges.
template <int S>
class LaneRecursion {
 public:
  static constexpr Index kWidth = kLanes<double>;

  // log_ratios, posteriors (N, S)
  LaneRecursion(const Matrix& transmat, const Vector& startprob, const StretchGroup& group, Edges* edges,
                const double* log_ratios, double* posteriors)
      : can_start_anywhere_(startprob.minCoeff() > 0),
        group_(group),
        edges_(edges),
        log_ratios_(log_ratios),
        posteriors_(posteriors) {
    const double unshift = std::ldexp(1.0, -kWeightShift);
    for (int i = 0; i < S; ++i) {
      start_.value[i] = all(startprob[i] * std::ldexp(unshift, kLevel));
      for (int j = 0; j < S; ++j) forward_[i][j] = backward_[j][i] = transmat(i, j) * unshift;
    }
  }

  // Both return false, with nothing of use written, if a row is neither ordinary evidence nor missing.
  bool filter() {
    Message weights[kBlock], messages[kBlock];
    Message last = Message::ones();
    for (Index first = 0; first < group_.n_steps(); first += kBlock) {
      const Index count = std::min(kBlock, group_.n_steps() - first);
      if (!weigh(first, count, weights)) return false;
      last = forward(first, count, last, weights, messages);
      for (Index k = 0; k < count; ++k) messages[k] = messages[k].normalized();
      write<1>(first, count, messages);
    }
    return true;
  }

  // The way back begins before the way forward is over: chunk by chunk, each with a warm-up of its own, so that what is
  // remembered stays in the cache. What a chunk assumed is compared with what the next one finds.
  bool smooth(Index warm_up) {
    // With many states the cache would hold hardly more than the warm-up of a chunk: chunks are long then.
    constexpr Index kChunk = S <= 8 ? 4096 / S / kBlock * kBlock : 4096;
    warm_up = (warm_up + kBlock - 1) / kBlock * kBlock;
    KeptMemory<Message> memory(static_cast<std::size_t>(2 * (kChunk + warm_up)));  // 2 MB, or 9 MB for 16 states
    Message *const weights = memory.data(), *const messages = weights + kChunk + warm_up;
    Message last = Message::ones(), assumed = Message::ones();
    Index filled = 0;
    for (Index base = 0; base < group_.n_steps(); base += kChunk) {
      const Index end = std::min(group_.n_steps() - base, kChunk + warm_up);
      for (; filled < end; filled += kBlock) {
        const Index count = std::min(kBlock, end - filled);
        if (!weigh(base + filled, count, weights + filled)) return false;
        last = forward(base + filled, count, last, weights + filled, messages + filled);
      }
      const bool is_last = base + end == group_.n_steps();
      const Message expected = assumed;
      Message back = Message::ones();
      for (Index stop = end; stop > 0;) {
        const Index first = (stop - 1) / kBlock * kBlock;
        if (stop == kChunk && !is_last) assumed = back;
        if (first >= kChunk && !is_last) {
          back = backward<false>(base + first, stop - first, back, weights + first, messages + first);
        } else {
          back = backward<true>(base + first, stop - first, back, weights + first, messages + first);
        }
        stop = first;
      }
      if (base > 0) compare(base, expected, back);
      if (is_last) break;
      filled = end - kChunk;
      std::copy_n(weights + kChunk, filled, weights);
      std::copy_n(messages + kChunk, filled, messages);
    }
    return true;
  }

 private:
  using Message = LaneMessage<S>;
  using Value = Lanes<double>;
  static constexpr Index kBlock = 16;  // frames of all lanes between which lanes and rows change places
  static constexpr int kLevel = 128;   // of messages

  // weights (count) <- w_i(y_t) 2^kWeightShift relative to the likeliest state of each frame; missing frames have
  // 2^kWeightShift everywhere.
  bool weigh(Index first, Index count, Message* weights) const {
    read(first, count, weights);
    Value trouble{};  // 0, or NaN in the lanes that hold a row out of the ordinary
    for (Index k = 0; k < count; ++k) {
      Message row = weights[k];
      trouble += center(row);
      weights[k] = weighed(row);
    }
    for (Index lane = 0; lane < kWidth; ++lane) {
      if (std::isnan(lane_of(trouble, lane))) return weigh_missing(first, count, weights);
    }
    return true;
  }

  // The same where frames are missing; false if there is anything else out of the ordinary.
  bool weigh_missing(Index first, Index count, Message* weights) const {
    read(first, count, weights);
    for (Index k = 0; k < count; ++k) center(weights[k]);
    for (Index lane = 0; lane < kWidth; ++lane) {
      if (!mend(first, count, lane, weights)) return false;
    }
    for (Index k = 0; k < count; ++k) weights[k] = weighed(weights[k]);
    return true;
  }

  static DRHMM_INLINE Message weighed(const Message& centered) {
    Message result;
    for (int i = 0; i < S; ++i) result.value[i] = exponential<kWeightShift>(centered.value[i]);
    return result;
  }

  // row <- row - max; returns 0 where the largest entry is finite and none is NaN (-inf excludes a state), else NaN.
  static DRHMM_INLINE Value center(Message& row) {
    Value most = row.value[0];
    for (int i = 1; i < S; ++i) most = row.value[i] > most ? row.value[i] : most;
    const Value zero{}, sum = row.sum();
    for (int i = 0; i < S; ++i) row.value[i] -= most;
    return (most - most) + (sum == sum ? zero : sum);
  }

  // Missing frames of a lane carry no evidence; false if there is anything else out of the ordinary.
  bool mend(Index first, Index count, Index lane, Message* weights) const {
    const Stretch& own = group_[lane];
    for (Index k = 0; k < count && own.from + first + k < own.to; ++k) {
      const double* const row = log_ratios_ + (own.from + first + k) * S;
      const auto n_nan = std::count_if(row, row + S, [](double value) { return std::isnan(value); });
      if (n_nan == 0 && std::isfinite(*std::max_element(row, row + S))) continue;
      if (n_nan < S) return false;
      for (int i = 0; i < S; ++i) set_lane(weights[k].value[i], lane, 0);
    }
    return true;
  }

  // messages (count) <- log ratios; lanes whose stretch is over have no evidence.
  void read(Index first, Index count, Message* messages) const {
    Value* const values = messages->value;
    const double* rows[kWidth];
    bool whole = count == kBlock;
    for (Index lane = 0; lane < kWidth; ++lane) {
      rows[lane] = log_ratios_ + (group_[lane].from + first) * S;
      whole = whole && group_[lane].n_steps() - first >= count;
    }
    if (whole) {
      for (Index place = 0; place < kBlock * S; place += kWidth) {
        for (Index lane = 0; lane < kWidth; ++lane) {
          prefetch_read(rows[lane] + place + kBlock * S);
          values[place + lane] = load(rows[lane] + place);
        }
        transpose(values + place);
      }
      return;
    }
    for (Index lane = 0; lane < kWidth; ++lane) {
      const Index n_there = std::clamp<Index>(group_[lane].n_steps() - first, 0, count) * S;
      for (Index place = 0; place < n_there; ++place) set_lane(values[place], lane, rows[lane][place]);
      for (Index place = n_there; place < count * S; ++place) set_lane(values[place], lane, 0);
    }
  }

  // Rows of the posteriors from messages (count), for the frames that belong to the stretches; uses the messages up.
  // The block that is written next lies in that direction.
  template <int kDirection>
  void write(Index first, Index count, Message* messages) {
    Value* const values = messages->value;
    double* rows[kWidth];
    bool whole = count == kBlock;
    for (Index lane = 0; lane < kWidth; ++lane) {
      const Stretch& own = group_[lane];
      rows[lane] = posteriors_ + (own.from + first) * S;
      whole = whole && own.from + first >= own.begin && own.from + first + count <= own.end;
    }
    if (whole) {
      for (Index place = 0; place < kBlock * S; place += kWidth) {
        transpose(values + place);
        for (Index lane = 0; lane < kWidth; ++lane) {
          prefetch_write(rows[lane] + place + kDirection * kBlock * S);
          store<double>(values[place + lane], rows[lane] + place);
        }
      }
      return;
    }
    for (Index lane = 0; lane < kWidth; ++lane) {
      const Stretch& own = group_[lane];
      const Index skipped = std::clamp<Index>(own.begin - own.from - first, 0, count) * S;
      const Index end = std::clamp<Index>(own.end - own.from - first, 0, count) * S;
      for (Index place = skipped; place < end; ++place) rows[lane][place] = lane_of(values[place], lane);
    }
  }

  // messages (count) <- f(t) = w(t) .* A^T f(t-1), where last is f of the frame before the block; returns that of the
  // block's last frame.
  Message forward(Index first, Index count, Message last, const Message* weights, Message* messages) {
    Value scale = last.template factor_to_level<kLevel>();
    for (Index k = 0; k < count; ++k) {
      Message next = last.times(forward_);
      if (const std::uint8_t starting = group_.starting(first + k); starting != 0) {
        next = next.times(scale).replaced(starting, start_);
        scale = all(1.0);
      }
      if (group_.cut(first + k) != 0) show(first + k, last, &Edges::before_begin, &Edges::before_end);
      last = next.times(weights[k].times(scale));
      if (!can_start_anywhere_ && group_.starting(first + k) != 0) last = checked_start(first + k, last);
      messages[k] = last;
      scale = last.template factor_to_level<kLevel>();
    }
    return last;
  }

  // Posteriors f(t) .* b(t), normalised, with b(t-1) = A (w(t) .* b(t)), where back is b of the block's last frame;
  // returns that of the frame before the block.
  template <bool is_written>
  Message backward(Index first, Index count, Message back, const Message* weights, const Message* messages) {
    Message posteriors[kBlock];
    for (Index k = count - 1; k >= 0; --k) {
      if constexpr (is_written) posteriors[k] = messages[k].times(back).normalized();
      back = back.times(weights[k].times(back.template factor_to_level<kLevel>())).times(backward_);
      if (const std::uint8_t starting = group_.starting(first + k); starting != 0) {
        back = back.replaced(starting, Message::ones());
      }
      if (group_.cut(first + k) != 0) show(first + k, back, &Edges::back_to_begin, &Edges::back_to_end);
    }
    if constexpr (is_written) write<-1>(first, count, posteriors);
    return back;
  }

  // Sequences that do not start where their first frame says are left to others.
  Message checked_start(Index step, Message message) {
    const Value sums = message.sum();
    for (Index lane = 0; lane < kWidth; ++lane) {
      if ((group_.starting(step) >> lane & 1) == 0 || !starts_elsewhere(lane_of(sums, lane) * std::ldexp(1.0, -kLevel)))
        continue;
      edges_[lane].disagreements.push_back(group_[lane].from + step);
      for (int i = 0; i < S; ++i) set_lane(message.value[i], lane, 1);
    }
    return message;
  }

  // The message is a copy, so that the original can stay in registers.
  void show(Index step, Message message, std::vector<double> Edges::* at_begin, std::vector<double> Edges::* at_end) {
    group_.show(step, edges_, at_begin, at_end, [&](Index lane) { return message.of_lane(lane); });
  }

  // What was assumed of the frame before a step, and what turned out.
  void compare(Index step, const Message& assumed, const Message& found) {
    for (Index lane = 0; lane < kWidth; ++lane) {
      const Index t = group_[lane].from + step;
      if (t >= group_[lane].to || agree(assumed.of_lane(lane), found.of_lane(lane))) continue;
      edges_[lane].disagreements.push_back(t);
    }
  }

  double forward_[S][S];   // row i: A_ij 2^-kWeightShift for all j
  double backward_[S][S];  // row j: A_ij 2^-kWeightShift for all i
  bool can_start_anywhere_;
  Message start_;
  const StretchGroup& group_;
  Edges* edges_;
  const double* log_ratios_;
  double* posteriors_;
};

}  // namespace drhmm
