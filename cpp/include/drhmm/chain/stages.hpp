// A chain whose states have durations: state i is a row of stages with the same evidence. A stage stays or moves to the
// next one; the last one leaves the state. Names as in dense.hpp; columns are states, and states are stages.
//
//   stage u of i      -> itself with stay_u, -> the next stage with 1 - stay_u
//   last stage of i   -> state j with (1 - stay_u) B_ij: its first stage, or with probability skip_j its last
// The unknown, if any, is the last column, with one stage: every stage moves to it with probability `rate`, and it
// returns to the stages of known states with probabilities `back`.
#pragma once

#include <type_traits>
#include <vector>

#include "drhmm/chain/chain.hpp"
#include "drhmm/chain/dense.hpp"
#include "drhmm/chain/values.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

class Stages {
 public:
  static constexpr int kStates = 0;

  explicit Stages(const StageRules& rules)
      : n_known_(rules.leaving.rows()),
        n_stages_(rules.stay.size()),
        has_unknown_(rules.has_unknown),
        leaving_(rules.leaving) {
    const double known = 1 - rules.rate;
    for (Index i = 0; i < n_known_; ++i) {
      first_.push_back(i == 0 ? 0 : last_.back() + 1);
      last_.push_back(first_.back() + rules.size[at(i)] - 1);
      size_.push_back(rules.size[at(i)]);
      leave_.push_back(known * rules.leave[i]);
      enter_first_.push_back(1 - rules.skip[i]);
      enter_last_.push_back(rules.skip[i]);
      for (Index u = first_.back(); u <= last_.back(); ++u) {
        stay_.push_back(known * rules.stay[u]);
        arrive_.push_back(u == first_.back() ? 0 : known * (1 - rules.stay[u - 1]));
        advance_.push_back(u == last_.back() ? 0 : known * (1 - rules.stay[u]));
        back_.push_back(has_unknown_ ? rules.back[u] : 0);
      }
    }
    rate_ = rules.rate;
    keep_ = rules.keep;
  }

  Index n_states() const { return n_stages_ + (has_unknown_ ? 1 : 0); }
  Index n_columns() const { return n_known_ + (has_unknown_ ? 1 : 0); }
  template <class Value>
  Index stride() const {
    return n_states() + 1;  // one more, always 0: the stage after the last
  }
  template <class Value>
  Index column_stride() const {
    return n_columns();
  }
  Index n_counts() const { return n_known_ * n_known_ + n_known_; }

  template <class Value>
  DRHMM_INLINE void forward(const Value* in, Value* out) const {
    step<false>(in, in, out);
  }
  template <class Value>
  DRHMM_INLINE void forward(const Value* in, const Value* w, Value* out) const {
    step<true>(in, w, out);
  }
  template <class Value>
  DRHMM_INLINE void backward(const Value* in, Value* out) const {
    step_back<false>(in, in, out);
  }
  template <class Value>
  DRHMM_INLINE void backward(const Value* in, const Value* w, Value* out) const {
    step_back<true>(in, w, out);
  }
  template <class Value>
  DRHMM_INLINE void weigh(Value* m, const Value* w) const {
    for (Index i = 0; i < n_known_; ++i) multiply(m + first_[at(i)], size_[at(i)], w[i]);
    if (has_unknown_) m[n_stages_] = m[n_stages_] * w[n_known_];
  }
  template <class Value>
  DRHMM_INLINE void by_column(const Value* m, Value* out) const {
    for (Index i = 0; i < n_known_; ++i) out[i] = sum(m + first_[at(i)], size_[at(i)]);
    if (has_unknown_) out[n_known_] = m[n_stages_];
  }

  // sums: transitions to other states, (M, M), then stays in states, (M); none for the unknown.
  template <class Value>
  DRHMM_INLINE void count(const Value* before, const Value* after, Value* sums) const {
    Value* const kept = sums + n_known_ * n_known_;
    for (Index i = 0; i < n_known_; ++i) {
      const Value leaving = before[last_[at(i)]] * leave_[at(i)];
      for (Index j = 0; j < n_known_; ++j) sums[i * n_known_ + j] += leaving * value_of_entering(after, j);
      for (Index u = first_[at(i)]; u <= last_[at(i)]; ++u) {
        Value value = after[u] * stay_[at(u)];
        value += after[u + 1] * advance_[at(u)];
        kept[i] += before[u] * value;
      }
    }
  }
  template <class Use>
  void for_each_count(const Use& use) const {
    leaving_.for_each_count(use);
    for (Index i = 0; i < n_known_; ++i) use(n_known_ * n_known_ + i, i, i, 1.0);
  }

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  template <bool is_weighed, class Value>
  DRHMM_INLINE void step(const Value* DRHMM_RESTRICT in, const Value* DRHMM_RESTRICT w,
                         Value* DRHMM_RESTRICT out) const {
    Value leaving[Chain::kMostWithDurations], entering[Chain::kMostWithDurations];
    for (Index i = 0; i < n_known_; ++i) leaving[i] = in[last_[at(i)]] * leave_[at(i)];
    leaving_.forward(leaving, entering);
    out[0] = in[0] * stay_[0];
    if constexpr (is_weighed) out[0] = out[0] * w[0];
    for (Index i = 0; i < n_known_; ++i) {
      const Index from = i == 0 ? 1 : first_[at(i)];
      move<is_weighed>(in + from, in + from - 1, arrive_.data() + from, from, last_[at(i)] + 1, w + i, out + from);
      Value entered = entering[i];
      if constexpr (is_weighed) entered = entered * w[i];
      out[first_[at(i)]] += entered * enter_first_[at(i)];
      out[last_[at(i)]] += entered * enter_last_[at(i)];
    }
    if (has_unknown_) {
      out[n_stages_] = in[n_stages_] * keep_;
      out[n_stages_] += sum(in, n_stages_) * rate_;
      if constexpr (is_weighed) out[n_stages_] = out[n_stages_] * w[n_known_];
      for (Index i = 0; i < n_known_; ++i) {
        Value back = in[n_stages_];
        if constexpr (is_weighed) back = back * w[i];
        for (Index u = first_[at(i)]; u <= last_[at(i)]; ++u) out[u] += back * back_[at(u)];
      }
    }
    out[n_states()] = Value{};
  }
  template <bool is_weighed, class Value>
  DRHMM_INLINE void step_back(const Value* DRHMM_RESTRICT in, const Value* DRHMM_RESTRICT w,
                              Value* DRHMM_RESTRICT out) const {
    Value entered[Chain::kMostWithDurations], left[Chain::kMostWithDurations];
    for (Index j = 0; j < n_known_; ++j) {
      entered[j] = value_of_entering(in, j);
      if constexpr (is_weighed) entered[j] = entered[j] * w[j];
    }
    leaving_.backward(entered, left);
    for (Index i = 0; i < n_known_; ++i) {
      const Index from = first_[at(i)];
      move<is_weighed>(in + from, in + from + 1, advance_.data() + from, from, last_[at(i)] + 1, w + i, out + from);
      out[last_[at(i)]] += left[i] * leave_[at(i)];
    }
    if (has_unknown_) {
      Value unknown = in[n_stages_];
      if constexpr (is_weighed) unknown = unknown * w[n_known_];
      out[n_stages_] = unknown * keep_;
      for (Index i = 0; i < n_known_; ++i) {
        Value back{};
        for (Index u = first_[at(i)]; u <= last_[at(i)]; ++u) {
          back += in[u] * back_[at(u)];
          out[u] += unknown * rate_;
        }
        if constexpr (is_weighed) back = back * w[i];
        out[n_stages_] += back;
      }
    }
    out[n_states()] = Value{};
  }

  // Stages from..to-1 of one state, which stay or move to a neighbour: out <- (in stay + beside moving) w.
  template <bool is_weighed, class Value>
  DRHMM_INLINE void move(const Value* DRHMM_RESTRICT in, const Value* DRHMM_RESTRICT beside,
                         const double* DRHMM_RESTRICT moving, Index from, Index to, const Value* w,
                         Value* DRHMM_RESTRICT out) const {
    const Value weight = *w;
    const double* const DRHMM_RESTRICT stay = stay_.data() + from;
    const Index n = to - from;
    Index u = 0;
    if constexpr (std::is_same_v<Value, double>) {
      for (; u + kLanes<double> <= n; u += kLanes<double>) {
        Lanes<double> some = load(in + u) * load(stay + u) + load(beside + u) * load(moving + u);
        if constexpr (is_weighed) some *= weight;
        store<double>(some, out + u);
      }
    }
    for (; u < n; ++u) {
      Value one = in[u] * stay[u];
      one += beside[u] * moving[u];
      if constexpr (is_weighed) one = one * weight;
      out[u] = one;
    }
  }

  template <class Value>
  DRHMM_INLINE Value value_of_entering(const Value* in, Index j) const {
    Value value = in[first_[at(j)]] * enter_first_[at(j)];
    value += in[last_[at(j)]] * enter_last_[at(j)];
    return value;
  }

  Index n_known_, n_stages_;
  bool has_unknown_;
  std::vector<Index> first_, last_, size_;                // stages of each state
  std::vector<double> leave_, enter_first_, enter_last_;  // (M)
  std::vector<double> stay_, arrive_, advance_, back_;    // (stages)
  Dense<0> leaving_;                                      // (M, M) B
  double rate_ = 0, keep_ = 0;
};

}  // namespace drhmm
