// Filtering and smoothing of mixing chains with few states, several stretches of frames at a time: each lane of a
// vector register walks through a stretch of its own.
//
// In a mixing chain the smallest entry of a predicted message is at least 2^-20 of its sum, so that one power of two
// every few frames keeps all messages within range (level.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "drhmm/recursion/kept_memory.hpp"
#include "drhmm/recursion/lane_message.hpp"
#include "drhmm/recursion/lane_weights.hpp"
#include "drhmm/recursion/stretch.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

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
        posteriors_(posteriors),
        is_streamed_(posteriors_are_streamed()) {
    const double unshift = std::ldexp(1.0, -kWeightShift);
    for (int i = 0; i < S; ++i) {
      start_.value[i] = all(startprob[i] * std::ldexp(unshift, kLevel));
      for (int j = 0; j < S; ++j) forward_[i][j] = backward_[j][i] = transmat(i, j) * unshift;
    }
  }

  // Both return false, with nothing of use written, if a row is neither ordinary evidence nor missing.
  bool filter() {
    Message weights[kBlock], messages[kBlock];
    Message last = unknown();
    for (Index first = 0; first < group_.n_steps(); first += kBlock) {
      const Index count = std::min(kBlock, group_.n_steps() - first);
      if (!forward(first, count, last, weights, messages)) return false;
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
    KeptMemory<Message> memory(static_cast<std::size_t>(2 * (kChunk + warm_up)));  // 1 MB, or 9 MB for 16 states
    Message *const weights = memory.data(), *const messages = weights + kChunk + warm_up;
    Message last = unknown(), assumed = unknown();
    Index filled = 0;
    for (Index base = 0; base < group_.n_steps(); base += kChunk) {
      const Index end = std::min(group_.n_steps() - base, kChunk + warm_up);
      for (; filled < end; filled += kBlock) {
        const Index count = std::min(kBlock, end - filled);
        if (!forward(base + filled, count, last, weights + filled, messages + filled)) return false;
      }
      const bool is_last = base + end == group_.n_steps();
      const Message expected = assumed;
      Message back = unknown();
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
  using Weights = QuickWeights<S>;
  using Value = Lanes<double>;
  // Frames of all lanes between which lanes and rows change places; a fraction of the first-level cache.
  static constexpr Index kBlock = S <= 8 ? 16 : 4;
  static constexpr Index kRescaled = 8;  // frames after which messages are brought back to their level, at the latest
  // Of messages; they lose 2^20 in a frame at most (2^30 in a first one), and backward ones 2^20 more.
  static constexpr int kLevel = 128 + 20 * (kRescaled + 1);

  static Message unknown() { return Message::constant(std::ldexp(1.0, kLevel)); }
  static DRHMM_INLINE Message rescaled(const Message& message) {
    return message.times(message.template factor_to_level<kLevel>());
  }
  static bool is_ordinary(const Message& message) {
    const Value sum = message.sum();
    for (Index lane = 0; lane < kWidth; ++lane) {
      if (std::isnan(lane_of(sum, lane))) return false;
    }
    return true;
  }

  // weights (count) <- w_i(y_t) 2^kWeightShift relative to the likeliest state of each frame, messages (count)
  // <- f(t) = w(t) .* A^T f(t-1), where last is f of the frame before the block and becomes that of its last frame.
  bool forward(Index first, Index count, Message& last, Message* weights, Message* messages) {
    const bool is_uneventful = count == kBlock && group_.is_uneventful(first, count);
    if (is_uneventful) {
      read(first, count, weights);
      Message next = last;
      for (Index some = 0; some < kBlock; some += Weights::kTogether) {
        if (some % kRescaled == 0) next = rescaled(next);
        Weights::weigh(weights + some);
        for (Index k = some; k < some + Weights::kTogether; ++k) {
          next = next.times(forward_).times(weights[k]);
          messages[k] = next;
        }
      }
      if (is_ordinary(next)) {  // every transition is possible: NaN of any weight would have reached the last message
        last = next;
        return true;
      }
    }
    if ((is_uneventful || !weigh(first, count, weights)) && !weigh_or_miss(first, count, weights)) return false;
    last = eventful_forward(first, count, last, weights, messages);
    return true;
  }

  // Weights of frames; false if one is not ordinary evidence, or may not be.
  bool weigh(Index first, Index count, Message* weights) const {
    read(first, count, weights);
    for (Index some = 0; some < count; some += Weights::kTogether) Weights::weigh(weights + some);
    return are_ordinary(count, weights);
  }

  // The same with missing frames; false if there is anything else out of the ordinary.
  bool weigh_or_miss(Index first, Index count, Message* weights) const {
    read(first, count, weights);
    for (Index k = 0; k < count; ++k) drhmm::weigh_or_miss(weights[k]);
    return are_ordinary(count, weights);
  }

  static bool are_ordinary(Index count, const Message* weights) {
    Message sum = weights[0];
    for (Index k = 1; k < count; ++k) sum = sum.plus(weights[k]);
    return is_ordinary(sum);
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
      for (Index place = n_there; place < kBlock * S; ++place) set_lane(values[place], lane, 0);
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
        if (is_streamed_) {
          for (Index lane = 0; lane < kWidth; ++lane) stream(values[place + lane], rows[lane] + place);
          continue;
        }
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

  // The same where sequences start, or stretches begin or end.
  Message eventful_forward(Index first, Index count, Message last, const Message* weights, Message* messages) {
    for (Index k = 0; k < count; ++k) {
      const std::uint8_t starting = group_.starting(first + k);
      if (group_.cut(first + k) != 0) show(first + k, last, &Edges::before_begin, &Edges::before_end);
      if (k % kRescaled == 0) last = rescaled(last);
      last = last.times(forward_);
      if (starting != 0) last = last.replaced(starting, start_);
      last = last.times(weights[k]);
      if (starting != 0 && !can_start_anywhere_) last = checked_start(first + k, last);
      messages[k] = last;
    }
    return last;
  }

  // Posteriors f(t) .* b(t), normalised, with b(t-1) = A (w(t) .* b(t)), where back is b of the block's last frame;
  // returns that of the frame before the block.
  template <bool is_written>
  Message backward(Index first, Index count, const Message& back, const Message* weights, const Message* messages) {
    if (count == kBlock && group_.is_uneventful(first, count)) {
      return backward<is_written, false>(first, kBlock, back, weights, messages);
    }
    return backward<is_written, true>(first, count, back, weights, messages);
  }

  template <bool is_written, bool is_eventful>
  DRHMM_INLINE Message backward(Index first, Index count, Message back, const Message* weights,
                                const Message* messages) {
    Message posteriors[kBlock];
    for (Index k = count - 1; k >= 0; --k) {
      if (k % kRescaled == kRescaled - 1 || k == count - 1) back = rescaled(back);
      if constexpr (is_written) posteriors[k] = messages[k].times(back).normalized();
      back = back.times(weights[k]).times(backward_);
      if constexpr (is_eventful) {
        if (const std::uint8_t starting = group_.starting(first + k); starting != 0) {
          back = back.replaced(starting, unknown());
        }
        if (group_.cut(first + k) != 0) show(first + k, back, &Edges::back_to_begin, &Edges::back_to_end);
      }
    }
    if constexpr (is_written) write<-1>(first, count, posteriors);
    return back;
  }

  bool posteriors_are_streamed() const {
    for (Index lane = 0; lane < kWidth; ++lane) {
      if (!is_past_caches(posteriors_ + group_[lane].from * S, group_.n_frames_in_all() * S)) return false;
    }
    return true;
  }

  // Sequences that do not start where their first frame says are left to others.
  Message checked_start(Index step, Message message) {
    const Value sums = message.sum();
    for (Index lane = 0; lane < kWidth; ++lane) {
      if ((group_.starting(step) >> lane & 1) == 0 || !starts_elsewhere(lane_of(sums, lane) * std::ldexp(1.0, -kLevel)))
        continue;
      edges_[lane].disagreements.push_back(group_[lane].from + step);
      for (int i = 0; i < S; ++i) set_lane(message.value[i], lane, std::ldexp(1.0, kLevel));
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
  bool is_streamed_;
};

}  // namespace drhmm
