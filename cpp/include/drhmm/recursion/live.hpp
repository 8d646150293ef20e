// A recursion that is fed one frame at a time: the forward message, and what the last frames said.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "drhmm/recursion/step.hpp"

namespace drhmm {

// The chain of live sequences, in both number types.
struct LiveChain {
  Chain<double> narrow;
  Chain<Scaled> wide;

  LiveChain(const ConstRows& transmat, const Eigen::Map<const Vector>& startprob)
      : narrow(transmat, startprob), wide(transmat, startprob) {}

  Index n_states() const { return narrow.n_states(); }
  void reach(std::int64_t dt) {
    narrow.reach(dt);
    wide.reach(dt);
  }
  // Multiplications that reaching gaps of dt steps takes, about.
  Index work_to_reach(std::int64_t dt) const {
    const Index cube = n_states() * n_states() * n_states();
    return narrow.powers.n_missing(dt) * cube * 10;
  }
};

// Messages are doubles as long as double can hold them, and Scaled from the frame on where it cannot.
// A frame is first proposed, which answers and changes nothing that counts, and then committed.
class LiveSequence {
 public:
  // Counting ends here, which only a forged snapshot comes near to.
  static constexpr std::int64_t kMostFrames = std::int64_t{1} << 62;

  LiveSequence(Index n_states, Index lag)
      : lag_(lag),
        dt_(static_cast<std::size_t>(n_slots()), 1),
        evidence_(Matrix::Zero(n_states, n_slots())),
        narrow_(Matrix::Zero(n_states, n_slots())) {}

  Index lag() const { return lag_; }
  std::int64_t n_frames() const { return n_frames_; }
  // Frames that can be looked back to, the newest among them.
  Index n_kept() const { return static_cast<Index>(std::min<std::int64_t>(n_frames_, lag_ + 1)); }

  // posterior (S) <- p(x_t-lag | y_1..y_t) if frame t, dt steps after the last one, has the evidence log_ratios (S);
  // has_answer says whether there is a frame t - lag.
  Status propose(const LiveChain& chain, const double* log_ratios, std::int64_t dt, double* posterior,
                 bool& has_answer) {
    const Index slot = slot_of(-1);
    std::copy(log_ratios, log_ratios + evidence_.rows(), evidence_.col(slot).data());
    dt_[static_cast<std::size_t>(slot)] = dt;
    has_answer = n_frames_ >= lag_;
    const Index back = has_answer ? lag_ : 0;
    proposed_wide_ = is_wide_ || chain.narrow.range == Range::scaled;
    if (!proposed_wide_) {
      const Status status = propose_in(chain.narrow, narrow_, back, posterior);
      if (status.outcome != Outcome::out_of_range) return status;
      proposed_wide_ = true;
    }
    if (!is_wide_) wide_ = narrow_.cast<Scaled>();
    return propose_in(chain.wide, wide_, back, posterior);
  }

  void commit() {
    newest_ = slot_of(-1);
    if (n_frames_ < kMostFrames) ++n_frames_;
    is_wide_ = proposed_wide_;
    // Back to doubles now and then: one strange frame should not slow down a stream for ever.
    constexpr std::int64_t kTryEvery = 64;
    if (is_wide_ && n_frames_ % kTryEvery == 0) try_narrow();
  }

  // posterior (S) <- p(x_t-back | y_1..y_t), back < n_kept; the start probabilities before the first frame.
  Status posterior(const LiveChain& chain, Index back, double* out) const {
    if (n_frames_ == 0) {
      Eigen::Map<Vector>(out, chain.n_states()) = chain.narrow.startprob;
      return {};
    }
    if (!is_wide_) {
      const Status status = look_back(chain.narrow, narrow_, 0, back, out);
      if (status.outcome != Outcome::out_of_range) return status;
    }
    return look_back(chain.wide, is_wide_ ? wide_ : NumberMatrix<Scaled>(narrow_.cast<Scaled>()), 0, back, out);
  }

  void clear() {
    n_frames_ = 0;
    is_wide_ = false;
  }

  // One remembered frame, for snapshots: `back` frames before the newest.
  struct Kept {
    NumberVector<Scaled> message;
    Vector evidence;
    std::int64_t dt = 1;
  };

  bool is_wide() const { return is_wide_; }

  Kept kept(Index back) const {
    const Index slot = slot_of(back);
    return {is_wide_ ? NumberVector<Scaled>(wide_.col(slot)) : NumberVector<Scaled>(narrow_.col(slot).cast<Scaled>()),
            evidence_.col(slot), dt_[static_cast<std::size_t>(slot)]};
  }

  // frames: oldest first, n_kept of them.
  void restore(std::int64_t n_frames, bool is_wide, const std::vector<Kept>& frames) {
    n_frames_ = n_frames;
    is_wide_ = is_wide;
    newest_ = 0;
    if (is_wide_) wide_.setZero(narrow_.rows(), narrow_.cols());
    for (std::size_t k = 0; k < frames.size(); ++k) {
      const Index slot = slot_of(static_cast<Index>(frames.size() - 1 - k));
      if (is_wide_) {
        wide_.col(slot) = frames[k].message;
      } else {
        for (Index i = 0; i < narrow_.rows(); ++i) narrow_(i, slot) = double(frames[k].message[i]);
      }
      evidence_.col(slot) = frames[k].evidence;
      dt_[static_cast<std::size_t>(slot)] = frames[k].dt;
    }
  }

 private:
  // The frames t - lag..t, and one more for the frame that is proposed.
  Index n_slots() const { return lag_ + 2; }
  Index slot_of(Index back) const { return (newest_ - back + n_slots()) % n_slots(); }

  template <class Number>
  Status propose_in(const Chain<Number>& chain, NumberMatrix<Number>& messages, Index back, double* posterior) {
    auto& [message, scratch] = scratch_of(chain);
    const Index slot = slot_of(-1);
    const bool first = n_frames_ == 0;
    if (first) {
      message = chain.startprob;
    } else {
      message = messages.col(newest_);
    }
    scratch.resize(chain.n_states());
    Status status;
    status.outcome = predict_forward(chain, dt_[static_cast<std::size_t>(slot)] - (first ? 1 : 0), message, scratch);
    if (status.ok()) {
      status.outcome = condition(evidence_.col(slot).data(), chain.range, message, status.column);
    }
    if (!status.ok()) return status;
    messages.col(slot) = message;
    if (back > 0) return look_back(chain, messages, -1, back, posterior);
    if (!normalize(message, posterior)) status.outcome = Outcome::out_of_range;
    return status;
  }

  // Memory of a step, kept from one to the next.
  template <class Number>
  struct Scratch {
    NumberVector<Number> message, predicted;
  };
  Scratch<double>& scratch_of(const Chain<double>&) { return narrow_scratch_; }
  Scratch<Scaled>& scratch_of(const Chain<Scaled>&) { return wide_scratch_; }

  // p(x_t-back | y_1..y_t), where t is the newest frame (last = 0) or the proposed one (last = -1).
  template <class Number>
  Status look_back(const Chain<Number>& chain, const NumberMatrix<Number>& messages, Index last, Index back,
                   double* posterior) const {
    NumberVector<Number> backward = NumberVector<Number>::Ones(chain.n_states());
    NumberVector<Number> scratch(chain.n_states());
    Status status;
    for (Index k = 0; k < back && status.ok(); ++k) {
      const Index slot = slot_of(last + k);
      drop_unreachable(messages.col(slot), backward);
      status.outcome = condition(evidence_.col(slot).data(), chain.range, backward, status.column);
      if (status.ok()) {
        status.outcome = predict_backward(chain, dt_[static_cast<std::size_t>(slot)], backward, scratch);
      }
    }
    backward = messages.col(slot_of(last + back)).cwiseProduct(backward);
    if (status.ok() && !normalize(backward, posterior)) status.outcome = Outcome::out_of_range;
    return status;
  }

  void try_narrow() {
    constexpr std::int64_t kSmallestExponent = -500;
    for (Index back = 0; back < n_kept(); ++back) {
      for (const Scaled& value : wide_.col(slot_of(back))) {
        if (value > Scaled(0) && value.exponent() < kSmallestExponent) return;
      }
    }
    for (Index back = 0; back < n_kept(); ++back) {
      const Index slot = slot_of(back);
      for (Index i = 0; i < narrow_.rows(); ++i) narrow_(i, slot) = double(wide_(i, slot));
    }
    is_wide_ = false;
  }

  Index lag_;
  Index newest_ = 0;
  std::int64_t n_frames_ = 0;
  bool is_wide_ = false;
  bool proposed_wide_ = false;
  std::vector<std::int64_t> dt_;  // (slots)
  Matrix evidence_;               // (S, slots)
  NumberMatrix<double> narrow_;   // (S, slots) forward messages
  Scratch<double> narrow_scratch_;
  Scratch<Scaled> wide_scratch_;
  NumberMatrix<Scaled> wide_;  // the same where double is not enough; empty otherwise
};

}  // namespace drhmm
