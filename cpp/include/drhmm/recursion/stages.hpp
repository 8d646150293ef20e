// A chain whose states have durations: state i is a row of stages with the same evidence. A stage is kept or left for
// the next one; the last one leaves the state. Names as in dense.hpp; columns are states, and states are stages.
//
//   stage u of i      -> itself with stay_u, -> the next stage with 1 - stay_u
//   last stage of i   -> state j with (1 - stay_u) B_ij: its first stage, or with probability skip_j its last
// The unknown, if there is one, is a last column of one stage: every stage leads to it with probability `rate`, and it
// leads to all stages of the known states by `back`.
#pragma once

#include <algorithm>
#include <vector>

#include "drhmm/recursion/chain.hpp"
#include "drhmm/recursion/values.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

class Stages {
 public:
  static constexpr int kStates = 0;

  // With logarithms of all probabilities for best paths.
  Stages(const StageRules& rules, bool logarithms)
      : n_known_(rules.leaving.rows()), n_stages_(rules.stay.size()), has_unknown_(rules.has_unknown) {
    const auto number = [&](double p) { return logarithms ? std::log(p) : p; };
    const double known = 1 - rules.rate;
    for (Index i = 0; i < n_known_; ++i) {
      first_.push_back(i == 0 ? 0 : last_.back() + 1);
      last_.push_back(first_.back() + rules.size[at(i)] - 1);
      leave_.push_back(number(known * rules.leave[i]));
      enter_first_.push_back(number(1 - rules.skip[i]));
      enter_last_.push_back(number(rules.skip[i]));
      for (Index u = first_.back(); u <= last_.back(); ++u) {
        column_.push_back(i);
        stay_.push_back(number(known * rules.stay[u]));
        arrive_.push_back(number(u == first_.back() ? 0 : known * (1 - rules.stay[u - 1])));
        advance_.push_back(number(u == last_.back() ? 0 : known * (1 - rules.stay[u])));
        back_.push_back(number(has_unknown_ ? rules.back[u] : 0));
      }
    }
    rate_ = number(rules.rate);
    keep_ = number(rules.keep);
    if (has_unknown_) column_.push_back(n_known_);
    for (Index i = 0; i < n_known_; ++i) {
      for (Index j = 0; j < n_known_; ++j) {
        leaving_.push_back(number(rules.leaving(i, j)));
        entering_.push_back(number(rules.leaving(j, i)));
      }
    }
  }

  Index n_states() const { return n_stages_ + (has_unknown_ ? 1 : 0); }
  Index n_columns() const { return n_known_ + (has_unknown_ ? 1 : 0); }
  template <class Value>
  Index stride() const {
    return n_states() + 1;  // one more, always 0: the last stage has a next one
  }
  template <class Value>
  Index column_stride() const {
    return n_columns();
  }
  Index n_counts() const { return n_known_ * n_known_ + n_known_; }

  template <class Value>
  DRHMM_INLINE void forward(const Value* DRHMM_RESTRICT in, Value* DRHMM_RESTRICT out) const {
    Value leaving[Chain::kMostWithDurations], entering[Chain::kMostWithDurations];
    for (Index i = 0; i < n_known_; ++i) leaving[i] = in[last_[at(i)]] * leave_[at(i)];
    product(leaving_.data(), leaving, entering);
    const double *const DRHMM_RESTRICT stay = stay_.data(), *const DRHMM_RESTRICT arrive = arrive_.data();
    out[0] = in[0] * stay[0];
    for (Index u = 1; u < n_stages_; ++u) {
      Value sum = in[u] * stay[u];
      sum += in[u - 1] * arrive[u];
      out[u] = sum;
    }
    for (Index j = 0; j < n_known_; ++j) {
      out[first_[at(j)]] += entering[j] * enter_first_[at(j)];
      out[last_[at(j)]] += entering[j] * enter_last_[at(j)];
    }
    if (has_unknown_) {
      Value known = in[0];
      for (Index u = 1; u < n_stages_; ++u) known += in[u];
      for (Index u = 0; u < n_stages_; ++u) out[u] += in[n_stages_] * back_[at(u)];
      Value unknown = in[n_stages_] * keep_;
      unknown += known * rate_;
      out[n_stages_] = unknown;
    }
    out[n_states()] = zero<Value>();
  }
  template <class Value>
  DRHMM_INLINE void backward(const Value* DRHMM_RESTRICT in, Value* DRHMM_RESTRICT out) const {
    Value entered[Chain::kMostWithDurations], left[Chain::kMostWithDurations];
    for (Index j = 0; j < n_known_; ++j) entered[j] = value_of_entering(in, j);
    product(entering_.data(), entered, left);
    const double *const DRHMM_RESTRICT stay = stay_.data(), *const DRHMM_RESTRICT advance = advance_.data();
    for (Index u = 0; u < n_stages_; ++u) {
      Value sum = in[u] * stay[u];
      sum += in[u + 1] * advance[u];
      out[u] = sum;
    }
    for (Index i = 0; i < n_known_; ++i) out[last_[at(i)]] += left[i] * leave_[at(i)];
    if (has_unknown_) {
      Value unknown = in[n_stages_] * keep_;
      for (Index u = 0; u < n_stages_; ++u) unknown += in[u] * back_[at(u)];
      for (Index u = 0; u < n_stages_; ++u) out[u] += in[n_stages_] * rate_;
      out[n_stages_] = unknown;
    }
    out[n_states()] = zero<Value>();
  }
  template <class Value>
  DRHMM_INLINE void forward(const Value* in, const Value* w, Value* out) const {
    forward(in, out);
    weigh(out, w);
  }
  // in is used up
  template <class Value>
  DRHMM_INLINE void backward(Value* in, const Value* w, Value* out) const {
    weigh(in, w);
    backward(in, out);
  }
  template <class Value>
  DRHMM_INLINE void weigh(Value* m, const Value* w) const {
    for (Index i = 0; i < n_known_; ++i) {
      const Value weight = w[i];
      for (Index u = first_[at(i)]; u <= last_[at(i)]; ++u) m[u] = m[u] * weight;
    }
    if (has_unknown_) m[n_stages_] = m[n_stages_] * w[n_known_];
  }
  template <class Value>
  DRHMM_INLINE void by_column(const Value* m, Value* out) const {
    for (Index i = 0; i < n_known_; ++i) {
      Value sum = m[first_[at(i)]];
      for (Index u = first_[at(i)] + 1; u <= last_[at(i)]; ++u) sum += m[u];
      out[i] = sum;
    }
    if (has_unknown_) out[n_known_] = m[n_stages_];
  }
  Index column_of(Index state) const { return column_[at(state)]; }

  // Sums of states that are left for others, (M, M), and then of states that are kept, (M). Not for the unknown.
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
    for (Index i = 0; i < n_known_; ++i) {
      for (Index j = 0; j < n_known_; ++j) use(i * n_known_ + j, i, j, leaving_[at(i * n_known_ + j)]);
      use(n_known_ * n_known_ + i, i, i, 1.0);
    }
  }

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  template <class Value>
  DRHMM_INLINE Value value_of_entering(const Value* in, Index j) const {
    Value value = in[first_[at(j)]] * enter_first_[at(j)];
    value += in[last_[at(j)]] * enter_last_[at(j)];
    return value;
  }

  // out_j = sum_i in_i matrix_ij for the few states
  template <class Value>
  DRHMM_INLINE void product(const double* DRHMM_RESTRICT matrix, const Value* DRHMM_RESTRICT in,
                            Value* DRHMM_RESTRICT out) const {
    for (Index j = 0; j < n_known_; ++j) out[j] = in[0] * matrix[j];
    for (Index i = 1; i < n_known_; ++i) {
      for (Index j = 0; j < n_known_; ++j) out[j] += in[i] * matrix[i * n_known_ + j];
    }
  }

  Index n_known_, n_stages_;
  bool has_unknown_;
  std::vector<Index> first_, last_, column_;              // of each state, and the column of each stage
  std::vector<double> leave_, enter_first_, enter_last_;  // (M)
  std::vector<double> stay_, arrive_, advance_, back_;    // (stages)
  std::vector<double> leaving_, entering_;                // (M, M) B and its transpose
  double rate_ = 0, keep_ = 0;
};

}  // namespace drhmm
