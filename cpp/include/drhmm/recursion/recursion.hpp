// Forward-backward over a group of stretches, in blocks of frames: weights, then unchecked steps, then one rescaling by
// a power of two.
//
//   f(t) = w(t) .* A^T f(t-1)      b(t-1) = A (w(t) .* b(t))      p(x_t | y) ~ f(t) .* b(t)
//
// Messages are rescaled to a sum of 2^kTop. In a chain that is not mixing, an entry below 2^-950 of the sum is raised
// to that floor. If such an entry has more than 2^-400 of a posterior, the stretch is hard: its answers are unusable,
// and it must be repeated in Scaled (wide.hpp), which has no floor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "drhmm/recursion/block_posteriors.hpp"
#include "drhmm/recursion/block_weights.hpp"
#include "drhmm/recursion/facts.hpp"
#include "drhmm/recursion/ranges.hpp"
#include "drhmm/recursion/stretch.hpp"
#include "drhmm/system/memory.hpp"

namespace drhmm {

template <class Value, class Operator>
class Recursion {
 public:
  static constexpr int kLanesHere = kWidth<Value>;
  static constexpr int kN = Operator::kStates;

  // capacity: steps kept at a time, a multiple of kBlock
  Recursion(const ChainFacts& facts, const Operator& op, const Evidence& evidence, const Answers& answers,
            const StretchGroup& group, Edges* edges, Index capacity)
      : facts_(facts),
        op_(op),
        evidence_(evidence),
        answers_(answers),
        group_(group),
        edges_(edges),
        stride_(op.template stride<Value>()),
        columns_(op.template column_stride<Value>()),
        memory_(static_cast<std::size_t>((capacity + 1) * (stride_ + columns_) + (kBlock + 1) * columns_ +
                                         5 * (stride_ + kPadding) + (answers.counts == nullptr ? 0 : op.n_counts()) +
                                         16)),
        is_careful_(static_cast<std::size_t>(capacity / kBlock), 0),
        weigher_(evidence_, group, columns_, facts.is_mixing,
                 (550 - kBlock * facts.bits) * MessageRange<Value, kN>::kLog2),
        posteriors_(op, group, answers.posteriors, aligned(memory_.data())),
        range_(facts.is_mixing, op.n_states(), stride_) {
    Value* at = aligned(memory_.data()) + kBlock * columns_ + kLanes<double>;  // after the posteriors
    const auto take = [&](Index n) { return std::exchange(at, at + n); };
    messages = take(capacity * stride_);
    weights = take(capacity * columns_);
    one_ = take(stride_ + kPadding), two_ = take(stride_ + kPadding), three_ = take(stride_ + kPadding);
    other_ = take(stride_ + kPadding);
    reach_ = take(columns_);
    sums_ = at;
    if (answers.counts != nullptr) forget_counts();
    for (Value* scratch : {one_, two_, three_, other_}) std::fill_n(scratch, stride_ + kPadding, Value{});
    row_.resize(static_cast<std::size_t>(columns_));
  }

  Value *messages, *weights;  // (capacity, stride), (capacity, column stride) of the kept steps

  Index stride() const { return stride_; }
  Index column_stride() const { return columns_; }
  const Status& status() const { return status_; }
  bool at_floor() const { return range_.at_floor; }
  bool is_hard(int l) const { return !(lane(range_.hard, l) < 0.5); }
  void forget_floors() { range_.forget_floors(); }

  // An uninformative message: all states are equal.
  void set_unknown(Value* m) const {
    for (Index i = 0; i < stride_; ++i) m[i] = i < op_.n_states() ? top() : Value{};
  }

  // m: the message of step first - 1 -> that of step first + count - 1. place: where to keep these steps. Returns
  // false, and sets the status, if evidence is invalid.
  bool forward(Index first, Index count, Index place, Value* m) {
    Value* const f = messages + place * stride_;
    Value* const w = weights + place * columns_;
    const bool is_eventful = count < kBlock || evidence_.dt != nullptr || !group_.is_uneventful(first, count);
    const bool needs_start = kLanesHere == 1 && first == 0 && !facts_.can_start_anywhere;
    char& is_careful = is_careful_[static_cast<std::size_t>(place / kBlock)];
    is_careful = 0;
    if constexpr (kWeighsOnTheWay) {
      if (facts_.is_mixing && !is_eventful && !needs_start && held_forward<true>(first, m, w, f)) return true;
    }
    const bool is_far = !weigher_.weigh(first, count, w, range_.hard) || needs_start;
    is_careful = is_eventful || is_far;
    if (is_careful) return eventful_forward(first, count, is_far, m, w, f);
    plain_forward(first, m, w, f);
    return true;
  }

  // b: the backward message of step first + count - 1 -> that of step first - 1, whose forward message is `before` (or
  // null). Writes posteriors and counts transitions of steps that belong to their stretches.
  void backward(Index first, Index count, Index place, Value* b, const Value* before, bool is_written) {
    if (answers_.counts != nullptr && is_written)
      return block_backward<true>(first, count, place, b, before, is_written);
    block_backward<false>(first, count, place, b, before, is_written);
  }

  // One frame of one sequence: m <- w .* (A^steps)^T m, w (C) <- its weights; steps is 0 at the start. Returns false,
  // and sets the status, if evidence is invalid.
  bool step_forward(const double* log_ratios, std::int64_t steps, Value* m, Value* w) {
    if (steps == 1) {
      op_.forward(m, one_);
      copy_values(one_, stride_, m);
    } else if (steps > 1) {
      across_gap<true>(&steps, m);
    }
    return condition(log_ratios, m, w);
  }
  // b <- A^dt (w .* b); f and w belong to the same frame as b.
  void step_backward(const Value* f, const Value* w, std::int64_t dt, Value* b) {
    if (!facts_.is_mixing) range_.drop_unreachable(f, b);
    range_.template rescale<false>(b);
    if (!facts_.is_mixing) range_.verify(f, b);
    if (dt == 1) {
      op_.backward(b, w, one_);
      copy_values(one_, stride_, b);
    } else {
      op_.weigh(b, w);
      across_gap<false>(&dt, b);
    }
  }
  // out (C) <- f .* b, by column and normalised; b null: f alone.
  void posterior_of(const Value* f, const Value* b, double* out) {
    for (Index i = 0; i < n_states(); ++i) two_[i] = b == nullptr ? f[i] : f[i] * b[i];
    if (b != nullptr && !facts_.is_mixing) range_.verify(f, b);
    posteriors_.keep(two_, 0);
    for (Index c = 0; c < n_columns(); ++c) out[c] = double(posteriors_.row(0)[c]);
  }

  void write_filtered(Index first, Index count, Index place) {
    for (Index k = 0; k < count; ++k) posteriors_.keep(messages + (place + k) * stride_, k);
    posteriors_.template write<1>(first, count);
  }

  // Moves the kept steps from `first` on to the front.
  void keep_from(Index first, Index count) {
    std::copy_n(messages + first * stride_, count * stride_, messages);
    std::copy_n(weights + first * columns_, count * columns_, weights);
    std::copy_n(is_careful_.begin() + first / kBlock, (count + kBlock - 1) / kBlock, is_careful_.begin());
  }

  // The log of the sum of a message before all rescaling, and that of a start, up to the same constant.
  double level_of(const Value* m) const { return range_.level(0, m); }
  double level_of_start() const { return range_.level_of_start(0); }

  // Adds the transitions counted so far to the answers, and forgets them.
  void accept_counts() {
    op_.for_each_count([&](Index k, Index i, Index j, double factor) {
      if (factor == 0) return;  // the sum of an impossible transition may be infinite
      double count = 0;
      for (int l = 0; l < kLanesHere; ++l) count += lane(sums_[k], l) * factor;
      answers_.counts[i * op_.n_columns() + j] += count;
    });
    forget_counts();
  }
  void forget_counts() {
    if (answers_.counts != nullptr) std::fill_n(sums_, op_.n_counts(), Value{});
  }

  // Adds the likelihoods of stretches that end with the last step.
  void finish_forward(const Value* m) {
    for (int l = 0; l < kLanesHere; ++l) {
      if (group_[l].begin < group_[l].end && group_[l].from + group_.n_steps() == group_[l].end) close(l, m);
    }
  }

 private:
  static constexpr Index kPadding = 8;  // powers of a chain may be padded where the chain is not
  static constexpr bool kHeld = kInRegisters<Value, kN>;
  static constexpr bool kWeighsOnTheWay = kHeld && kN <= 4;
  using Weigher = BlockWeights<Value, kN>;

  // The first of these numbers that begins a line of the cache: rows of registers do not straddle lines from there.
  static Value* aligned(Value* memory) {
    constexpr std::uintptr_t kLine = 64;  // bytes
    const std::uintptr_t beyond = reinterpret_cast<std::uintptr_t>(memory) % kLine;
    return memory + (kLine - beyond) % kLine / sizeof(Value);
  }
  static Value top() { return same<Value>(0x1p500); }
  Index n_states() const { return kN > 0 ? kN : op_.n_states(); }
  Index n_columns() const { return kN > 0 ? kN : op_.n_columns(); }
  Index stride_here() const { return kN > 0 ? kN : stride_; }
  Index columns_here() const { return kN > 0 ? kN : columns_; }

  // ---- evidence

  // m <- m .* w, with weights w relative to the likeliest reachable column.
  bool condition(const double* log_ratios, Value* m, Value* w) {
    double pivot = 0;
    bool is_lost = false;
    op_.by_column(m, reach_);
    status_.outcome =
        weights_of_reachable(log_ratios, n_columns(), reach_, facts_.is_mixing, std::exp2(facts_.bits - 550), w,
                             row_.data(), pivot, status_.column, is_lost);
    if (!status_.ok()) return false;
    if (is_lost) range_.hard = 1;
    for (Index c = n_columns(); c < columns_here(); ++c) w[c] = Value(0);
    range_.pivots += pivot;
    op_.weigh(m, w);
    range_.template rescale<true>(m);
    return true;
  }

  // ---- forward

  // The steps of a block of few states, in registers. With makes_weights, interleaves weights and steps, which do not
  // wait for each other; returns false, with m unchanged, if the evidence is not plain.
  template <bool makes_weights>
  DRHMM_INLINE bool held_forward(Index first, Value* m, Value* w, Value* f) {
    if constexpr (makes_weights) weigher_.read(first, kBlock, w);
    Value x[kN], y[kN], spread{}, check{};
    copy_values(m, kN, x);
    for (Index k = 0; k < kBlock; k += Weigher::kRowsTogether) {
      if constexpr (makes_weights) weigher_.weigh_rows(w, k, spread, check);
      for (Index r = k; r < k + Weigher::kRowsTogether; ++r) {
        op_.forward(x, w + r * kN, y);
        for (int i = 0; i < kN; ++i) f[r * kN + i] = x[i] = y[i];
      }
    }
    if (makes_weights && !all_below(check, HUGE_VAL)) return false;
    range_.template rescale<true>(x);
    copy_values(x, kN, f + (kBlock - 1) * kN);
    copy_values(x, kN, m);
    for (Index k = 0; k < kBlock; ++k) range_.pivots += weigher_.pivots[k];
    return true;
  }

  void plain_forward(Index first, Value* m, Value* w, Value* f) {
    if constexpr (kHeld) {
      held_forward<false>(first, m, w, f);
    } else {
      for (Index k = 0; k < kBlock; ++k) {
        op_.forward(k == 0 ? m : f + (k - 1) * stride_, w + k * columns_, f + k * stride_);
      }
      range_.template rescale<true>(f + (kBlock - 1) * stride_);
      copy_values(f + (kBlock - 1) * stride_, stride_, m);
      for (Index k = 0; k < kBlock; ++k) range_.pivots += weigher_.pivots[k];
    }
  }

  // Blocks with starts, ends, cuts, gaps, or log ratios that are far apart.
  bool eventful_forward(Index first, Index count, bool is_far, Value* m, Value* w, Value* f) {
    for (Index k = 0; k < count; ++k) {
      const Index step = first + k;
      const std::uint8_t starting = group_.starting(step);
      if ((group_.cut(step) | starting) != 0) show_forward(step, m);
      predict(step, starting, m);
      Value* const own = w + k * columns_;
      if (is_far) {
        if constexpr (kLanesHere == 1) {
          const Index t = group_[0].from + step;
          if (!condition(evidence_.row(t), m, own)) return status_.frame = t, false;
        }
      } else {
        range_.pivots += weigher_.pivots[k];
        op_.weigh(m, own);
        const Value one = same<Value>(1.0);
        // Too much is lost if the first frame favours states that cannot start.
        if (starting != 0 && !facts_.can_start_anywhere) range_.hard = range_.sum_of(m) > 0x1p470 ? range_.hard : one;
        range_.template rescale<true>(m);
      }
      copy_values(m, stride_, f + k * stride_);
    }
    return true;
  }

  // m <- (A^dt)^T m; in lanes where a sequence starts, from the start probabilities.
  void predict(Index step, std::uint8_t starting, Value* m) {
    if (evidence_.dt == nullptr) {
      if (kLanesHere > 1 || starting == 0) {
        op_.forward(m, one_);
        copy_values(one_, stride_, m);
      }
      return set_start(starting, m);
    }
    set_start(starting, m);
    std::int64_t dt[kLanesHere];
    steps_of(step, starting, dt);
    across_gap<true>(dt, m);
  }
  void set_start(std::uint8_t lanes, Value* m) const {
    for (int l = 0; lanes >> l != 0; ++l) {
      if ((lanes >> l & 1) == 0) continue;
      for (Index i = 0; i < n_states(); ++i) put(m[i], l, facts_.start[i] * 0x1p500);
    }
  }
  // dt (lanes) <- steps of the chain before a step of the group; one less at the start of a sequence.
  void steps_of(Index step, std::uint8_t starting, std::int64_t* dt) const {
    for (int l = 0; l < kLanesHere; ++l) {
      const Index t = group_[l].from + step;
      dt[l] = t < group_[l].to ? evidence_.dt[t] - (starting >> l & 1) : 1;
    }
  }

  // m <- (A^dt)^T m, or A^dt m; dt (lanes).
  template <bool is_forward>
  void across_gap(const std::int64_t* dt, Value* m) {
    std::int64_t longest = 0, digits = 0;
    for (int l = 0; l < kLanesHere; ++l) {
      longest = std::max(longest, dt[l]);
      digits |= dt[l];
    }
    const auto& squares = facts_.powers->reach(longest);
    for (int k = 0; digits >> k != 0; ++k) {
      if ((digits >> k & 1) == 0) continue;
      if (static_cast<std::size_t>(k) >= squares.of.size()) {  // does not fit in double
        for (int l = 0; l < kLanesHere; ++l) {
          if (dt[l] >> k != 0) put(range_.hard, l, 1.0);
        }
        return;
      }
      const auto& square = *squares.of[static_cast<std::size_t>(k)];
      if (k == 0) {
        is_forward ? op_.forward(m, one_) : op_.backward(m, one_);
      } else {
        is_forward ? square.products.forward(m, one_) : square.products.backward(m, one_);
      }
      Value is_on{};
      for (int l = 0; l < kLanesHere; ++l) put(is_on, l, static_cast<double>(dt[l] >> k & 1));
      for (Index i = 0; i < n_states(); ++i) m[i] = is_on > 0.5 ? one_[i] : m[i];
      if (!facts_.is_mixing) range_.template rescale<is_forward>(m);
    }
  }

  // ---- backward

  template <bool with_counts>
  DRHMM_INLINE void block_backward(Index first, Index count, Index place, Value* b, const Value* before,
                                   bool is_written) {
    const bool is_careful = is_careful_[static_cast<std::size_t>(place / kBlock)] != 0;
    if (is_careful || count < kBlock) {
      steps_backward<with_counts, true>(first, count, place, b, before, is_written);
    } else {
      steps_backward<with_counts, false>(first, kBlock, place, b, before, is_written);
    }
    if (is_written) posteriors_.template write<-1>(first, count);
  }

  template <bool with_counts, bool is_careful>
  DRHMM_INLINE void steps_backward(Index first, Index count, Index place, Value* b, const Value* before,
                                   bool is_written) {
    Value registers[kHeld ? 2 * kN : 1];
    Value* back = kHeld ? registers : b;
    Value* next = kHeld ? registers + kN : other_;
    if constexpr (kHeld) copy_values(b, kN, back);
    for (Index k = count - 1; k >= 0; --k) {
      const Value* const f = messages + (place + k) * stride_here();
      const Value* const w = weights + (place + k) * columns_here();
      if constexpr (!kHeld) prefetch_step(place + k - 2);
      if (is_careful || k == count - 1) {
        if (!facts_.is_mixing) range_.drop_unreachable(f, back);
        range_.template rescale<false>(back);
        if (!facts_.is_mixing) range_.verify(f, back);
      }
      if (is_written) {
        if constexpr (kHeld) {
          Value p[kN];
          for (int i = 0; i < kN; ++i) p[i] = f[i] * back[i];
          posteriors_.keep(p, k);
        } else {
          for (Index i = 0; i < n_states(); ++i) two_[i] = f[i] * back[i];
          posteriors_.keep(two_, k);
        }
      }
      const std::uint8_t starting = is_careful ? group_.starting(first + k) : 0;
      if constexpr (with_counts) {
        copy_values(back, stride_here(), three_);
        op_.weigh(three_, w);  // w(t) .* b(t)
      }
      if (is_careful && evidence_.dt != nullptr) {
        std::int64_t dt[kLanesHere];
        steps_of(first + k, starting, dt);
        op_.weigh(back, w);
        across_gap<false>(dt, back);
      } else if (kLanesHere > 1 || starting == 0) {  // nothing is before the start of a sequence
        op_.backward(back, w, next);
        if constexpr (kHeld) {
          copy_values(next, kN, back);
        } else {
          std::swap(back, next);
        }
      }
      if constexpr (with_counts) {
        const Value* const earlier = k > 0 ? f - stride_here() : before;
        if (earlier != nullptr) count_transitions(first + k, starting, earlier, back);
      }
      if constexpr (is_careful) {
        set_unknown(starting, back);
        if (group_.cut(first + k) != 0) show(first + k, back, &Edges::back_to_begin, &Edges::back_to_end);
      }
    }
    if (back != b) copy_values(back, stride_here(), b);
  }

  // Messages of many states leave the cache before they are read again.
  DRHMM_INLINE void prefetch_step(Index place) const {
    constexpr Index kLine = 8;  // numbers
    const Index n_numbers = Index{sizeof(Value) / sizeof(double)};
    if (place < 0) return;
    const auto* const f = reinterpret_cast<const double*>(messages + place * stride_);
    const auto* const w = reinterpret_cast<const double*>(weights + place * columns_);
    for (Index k = 0; k < n_numbers * stride_; k += kLine) prefetch_read(f + k);
    for (Index k = 0; k < n_numbers * columns_; k += kLine) prefetch_read(w + k);
  }

  void set_unknown(std::uint8_t lanes, Value* m) const {
    for (int l = 0; lanes >> l != 0; ++l) {
      if ((lanes >> l & 1) == 0) continue;
      for (Index i = 0; i < n_states(); ++i) put(m[i], l, 0x1p500);
    }
  }

  // Adds p(x_t-1 = i, x_t = j | y) / A_ij, in lanes where frame t belongs to the stretch and is not the first of its
  // sequence. earlier: f(t-1); back: b(t-1); three_: w(t) .* b(t).
  DRHMM_INLINE void count_transitions(Index step, std::uint8_t starting, const Value* earlier, const Value* back) {
    Value total = earlier[0] * back[0];
    for (Index i = 1; i < n_states(); ++i) total += earlier[i] * back[i];
    Value share = same<Value>(1.0);
    for (int l = 0; l < kLanesHere; ++l) {
      if (belongs(group_[l].from + step, l) && (starting >> l & 1) == 0) continue;
      if constexpr (kLanesHere == 1)
        return;
      else
        put(share, l, 0.0);
    }
    share = share / total;
    for (Index i = 0; i < n_states(); ++i) two_[i] = earlier[i] * share;
    op_.count(two_, three_, sums_);
  }

  bool belongs(Index t, int l) const { return t >= group_[l].begin && t < group_[l].end; }

  // ---- edges of stretches, and their likelihoods

  void show_forward(Index step, const Value* m) {
    if (group_.cut(step) != 0) show(step, m, &Edges::before_begin, &Edges::before_end);
    if (answers_.log_likelihoods == nullptr) return;
    const unsigned lanes = group_.cut(step) | group_.starting(step);
    for (int l = 0; l < kLanesHere; ++l) {
      if ((lanes >> l & 1) == 0) continue;
      const Index t = group_[l].from + step;
      if (t > group_[l].begin && t <= group_[l].end) close(l, m, t);
      const bool is_starting = (group_.starting(step) >> l & 1) != 0;
      opened_[l] = is_starting ? range_.level_of_start(l) : range_.level(l, m);
    }
  }
  void close(int l, const Value* m, Index t = -1) {
    if (answers_.log_likelihoods == nullptr) return;
    edges_[l].gains.emplace_back((t < 0 ? group_[l].end : t) - 1, range_.level(l, m) - opened_[l]);
  }
  void show(Index step, const Value* m, std::vector<double> Edges::* at_begin, std::vector<double> Edges::* at_end) {
    group_.show(step, edges_, at_begin, at_end, [&](int l) {
      std::vector<double> message(static_cast<std::size_t>(n_states()));
      for (Index i = 0; i < n_states(); ++i) message[static_cast<std::size_t>(i)] = lane(m[i], l);
      return message;
    });
  }

  const ChainFacts& facts_;
  const Operator& op_;
  const Evidence evidence_;
  const Answers answers_;
  const StretchGroup& group_;
  Edges* edges_;
  Index stride_, columns_;
  KeptMemory<Value> memory_;
  std::vector<char> is_careful_;  // of kept blocks
  Weigher weigher_;
  BlockPosteriors<Value, Operator> posteriors_;
  Value *one_, *two_, *three_, *other_, *reach_, *sums_;  // (stride), reach_ (columns), sums_ (counts)
  std::vector<double> row_;                               // (columns)
  Status status_;
  MessageRange<Value, kN> range_;
  double opened_[kLanesHere] = {};
};

}  // namespace drhmm
