// A recursion over one frame at a time, which keeps the last ones. Fixed-lag smoothing of whole sequences uses it, too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "drhmm/recursion/evidence.hpp"
#include "drhmm/recursion/ranges.hpp"

namespace drhmm {

// Steps of one thread on a chain, in one number type; messages have stride() numbers, weights column_stride().
template <class Value>
class LiveSteps {
 public:
  virtual ~LiveSteps() = default;
  virtual Index stride() const = 0;
  virtual Index column_stride() const = 0;
  virtual void set_start(Value* m) const = 0;
  // As in Recursion.
  virtual Status forward(const double* log_ratios, std::int64_t steps, Value* m, Value* w) = 0;
  virtual void backward(const Value* f, const Value* w, std::int64_t dt, Value* b) = 0;
  virtual void set_unknown(Value* b) const = 0;
  virtual void posterior_of(const Value* f, const Value* b, double* out) = 0;
  // Whether double lost too much since the last call.
  virtual bool was_hard() = 0;
};

// The working memory of a thread that steps live sequences of one chain.
struct LiveEngine {
  bool needs_scaled;
  Index n_states;  // numbers of a message without padding
  std::unique_ptr<LiveSteps<double>> narrow;
  std::unique_ptr<LiveSteps<Scaled>> wide;
};

// Messages are doubles until double is too narrow for a frame, and Scaled from there on. `propose` answers for a frame;
// only `commit` adds it to the sequence.
class LiveSequence {
 public:
  // The count stops here; only a forged snapshot comes near it.
  static constexpr std::int64_t kMostFrames = std::int64_t{1} << 62;

  LiveSequence(Index n_columns, Index lag)
      : lag_(lag),
        n_columns_(n_columns),
        dt_(static_cast<std::size_t>(n_slots()), 1),
        evidence_(static_cast<std::size_t>(n_slots() * n_columns)) {}

  Index lag() const { return lag_; }
  std::int64_t n_frames() const { return n_frames_; }
  // Kept frames, the newest included.
  Index n_kept() const { return static_cast<Index>(std::min<std::int64_t>(n_frames_, lag_ + 1)); }

  // posterior (C) <- p(x_t-lag | y_1..y_t) if frame t, dt steps after the last one, has the evidence log_ratios (C);
  // has_answer says whether there is a frame t - lag.
  Status propose(const LiveEngine& engine, const double* log_ratios, std::int64_t dt, double* posterior,
                 bool& has_answer) {
    const Index slot = slot_of(-1);
    std::copy_n(log_ratios, n_columns_, evidence_of(slot));
    dt_[static_cast<std::size_t>(slot)] = dt;
    has_answer = n_frames_ >= lag_;
    const Index back = has_answer ? lag_ : 0;
    proposed_wide_ = is_wide_ || engine.needs_scaled;
    if (!proposed_wide_) {
      const Status status = propose_in(*engine.narrow, narrow_, back, posterior);
      const bool was_hard = engine.narrow->was_hard();
      if (!was_hard) return status;
      proposed_wide_ = true;
    }
    if (!is_wide_) widen(engine);
    return propose_in(*engine.wide, wide_, back, posterior);
  }

  void commit(const LiveEngine& engine) {
    newest_ = slot_of(-1);
    if (n_frames_ < kMostFrames) ++n_frames_;
    is_wide_ = proposed_wide_;
    // Tries doubles again now and then: one unusual frame should not slow down a stream for ever.
    constexpr std::int64_t kTryEvery = 64;
    if (is_wide_ && !engine.needs_scaled && n_frames_ % kTryEvery == 0) try_narrow(engine);
  }

  // out (C) <- p(x_t-back | y_1..y_t), back < n_kept; the start probabilities before the first frame.
  Status posterior(const LiveEngine& engine, Index back, double* out) {
    if (n_frames_ == 0) {
      std::vector<double> start(static_cast<std::size_t>(engine.narrow->stride()));
      engine.narrow->set_start(start.data());
      engine.narrow->posterior_of(start.data(), nullptr, out);
      return {};
    }
    if (!is_wide_) {
      look_back(*engine.narrow, narrow_, 0, back, out);
      if (!engine.narrow->was_hard()) return {};
      widen(engine);
    }
    look_back(*engine.wide, wide_, 0, back, out);
    return {};
  }

  void clear() {
    n_frames_ = 0;
    is_wide_ = false;
  }

  // One kept frame, for snapshots.
  struct Kept {
    std::vector<Scaled> message;   // (states), the largest in [1, 2)
    std::vector<double> evidence;  // (C)
    std::int64_t dt = 1;
  };

  bool is_wide() const { return is_wide_; }

  Kept kept(const LiveEngine& engine, Index back) const {
    const Index slot = slot_of(back);
    Kept frame;
    frame.dt = dt_[static_cast<std::size_t>(slot)];
    const double* const evidence = evidence_.data() + slot * n_columns_;
    frame.evidence.assign(evidence, evidence + n_columns_);
    Scaled most(0);
    for (Index i = 0; i < engine.n_states; ++i) {
      frame.message.push_back(is_wide_ ? wide_.message(slot)[i] : Scaled(narrow_.message(slot)[i]));
      most = std::max(most, frame.message.back());
    }
    for (Scaled& value : frame.message) value = value.times_power_of_two(-most.exponent());
    return frame;
  }

  // frames (n_kept), oldest first. Recomputes the weights from the evidence.
  Status restore(const LiveEngine& engine, std::int64_t n_frames, bool is_wide, const std::vector<Kept>& frames) {
    n_frames_ = n_frames;
    is_wide_ = is_wide;
    newest_ = 0;
    Status status;
    for (std::size_t k = 0; k < frames.size() && status.ok(); ++k) {
      const Index slot = slot_of(static_cast<Index>(frames.size() - 1 - k));
      std::copy_n(frames[k].evidence.data(), n_columns_, evidence_of(slot));
      dt_[static_cast<std::size_t>(slot)] = frames[k].dt;
      status = is_wide ? restore_in(*engine.wide, wide_, slot, frames[k])
                       : restore_in(*engine.narrow, narrow_, slot, frames[k]);
      if (status.ok() && !is_wide) {  // evidence too far apart for Scaled never becomes a frame
        std::vector<Scaled> unused(static_cast<std::size_t>(engine.wide->column_stride()));
        status = reweigh(*engine.wide, frames[k], unused.data());
      }
    }
    return status;
  }

 private:
  // Forward messages and weights of the kept frames; empty until they are used.
  template <class Value>
  struct Slots {
    Index stride = 0, columns = 0;
    std::vector<Value> messages, weights;

    void fit(const LiveSteps<Value>& steps, Index n_slots) {
      if (!messages.empty()) return;
      stride = steps.stride();
      columns = steps.column_stride();
      messages.resize(static_cast<std::size_t>((n_slots + 1) * stride));  // one more as scratch
      weights.resize(static_cast<std::size_t>(n_slots * columns));
    }
    Value* message(Index slot) { return messages.data() + slot * stride; }
    const Value* message(Index slot) const { return messages.data() + slot * stride; }
    Value* weight(Index slot) { return weights.data() + slot * columns; }
  };

  // Frames t - lag..t, and the proposed one.
  Index n_slots() const { return lag_ + 2; }
  Index slot_of(Index back) const { return (newest_ - back + n_slots()) % n_slots(); }
  double* evidence_of(Index slot) { return evidence_.data() + slot * n_columns_; }

  template <class Value>
  Status propose_in(LiveSteps<Value>& steps, Slots<Value>& slots, Index back, double* posterior) {
    slots.fit(steps, n_slots());
    const Index slot = slot_of(-1);
    const bool is_first = n_frames_ == 0;
    Value* const m = slots.message(slot);
    if (is_first) {
      steps.set_start(m);
    } else {
      std::copy_n(slots.message(newest_), slots.stride, m);
    }
    const std::int64_t n_steps = dt_[static_cast<std::size_t>(slot)] - (is_first ? 1 : 0);
    const Status status = steps.forward(evidence_of(slot), n_steps, m, slots.weight(slot));
    if (status.ok()) look_back(steps, slots, -1, back, posterior);
    return status;
  }

  // p(x_t-back | y_1..y_t), where t is the newest frame (last = 0) or the proposed one (last = -1).
  template <class Value>
  void look_back(LiveSteps<Value>& steps, Slots<Value>& slots, Index last, Index back, double* posterior) {
    if (back == 0) return steps.posterior_of(slots.message(slot_of(last)), nullptr, posterior);
    Value* const b = slots.message(n_slots());
    steps.set_unknown(b);
    for (Index k = 0; k < back; ++k) {
      const Index slot = slot_of(last + k);
      steps.backward(slots.message(slot), slots.weight(slot), dt_[static_cast<std::size_t>(slot)], b);
    }
    steps.posterior_of(slots.message(slot_of(last + back)), b, posterior);
  }

  template <class Value>
  Status restore_in(LiveSteps<Value>& steps, Slots<Value>& slots, Index slot, const Kept& frame) {
    slots.fit(steps, n_slots());
    for (std::size_t i = 0; i < frame.message.size(); ++i) {
      slots.message(slot)[i] = Value(frame.message[i].times_power_of_two(is_scaled<Value> ? 0 : 490));
    }
    return reweigh(steps, frame, slots.weight(slot));
  }

  // weights (columns) <- those of a frame. They depend on the reachable columns: a column with message 0 has weight 0,
  // as its evidence excludes it.
  template <class Value>
  static Status reweigh(LiveSteps<Value>& steps, const Kept& frame, Value* weights) {
    std::vector<Value> reach(static_cast<std::size_t>(steps.stride()), Value(0));
    for (std::size_t i = 0; i < frame.message.size(); ++i) {
      reach[i] = frame.message[i] > Scaled(0) ? Value(1) : Value(0);
    }
    return steps.forward(frame.evidence.data(), 0, reach.data(), weights);
  }

  void widen(const LiveEngine& engine) {
    wide_.fit(*engine.wide, n_slots());
    if (n_frames_ == 0) return;
    for (Index back = 0; back < n_kept(); ++back) {
      const Index slot = slot_of(back);
      for (Index i = 0; i < std::min(wide_.stride, narrow_.stride); ++i) {
        wide_.message(slot)[i] = Scaled(narrow_.message(slot)[i]);
      }
      for (Index c = 0; c < n_columns_; ++c) wide_.weight(slot)[c] = Scaled(narrow_.weight(slot)[c]);
    }
  }

  void try_narrow(const LiveEngine& engine) {
    narrow_.fit(*engine.narrow, n_slots());
    std::vector<std::vector<double>> messages;
    for (Index back = 0; back < n_kept(); ++back) {
      const Scaled* const m = wide_.message(slot_of(back));
      messages.push_back(narrowed({m, m + wide_.stride}, narrow_.stride));
      if (!is_clean(messages.back())) return;
      for (Index c = 0; c < n_columns_; ++c) {
        const Scaled w = wide_.weight(slot_of(back))[c];
        if (w > Scaled(0) && w.exponent() < -900) return;
      }
    }
    for (Index back = 0; back < n_kept(); ++back) {
      const Index slot = slot_of(back);
      std::copy_n(messages[static_cast<std::size_t>(back)].data(), narrow_.stride, narrow_.message(slot));
      std::fill_n(narrow_.weight(slot), narrow_.columns, 0.0);
      for (Index c = 0; c < n_columns_; ++c) narrow_.weight(slot)[c] = double(wide_.weight(slot)[c]);
    }
    is_wide_ = false;
  }

  Index lag_, n_columns_;
  Index newest_ = 0;
  std::int64_t n_frames_ = 0;
  bool is_wide_ = false;
  bool proposed_wide_ = false;
  std::vector<std::int64_t> dt_;  // (slots)
  std::vector<double> evidence_;  // (slots, C)
  Slots<double> narrow_;
  Slots<Scaled> wide_;
};

}  // namespace drhmm
