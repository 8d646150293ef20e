// The evidence of frames as weights, one frame in each lane.
#pragma once

#include "drhmm/exponential.hpp"
#include "drhmm/recursion/lane_message.hpp"
#include "drhmm/recursion/level.hpp"

namespace drhmm {

namespace detail {

DRHMM_INLINE Lanes<double> smaller(const Lanes<double>& one, const Lanes<double>& other) {
  return one < other ? one : other;
}

DRHMM_INLINE Lanes<double> larger(const Lanes<double>& one, const Lanes<double>& other) {
  return one > other ? one : other;
}

// 0 where the largest entry of a row is finite and none is NaN (-inf excludes a state), else NaN.
DRHMM_INLINE Lanes<double> trouble(const Lanes<double>& largest, const Lanes<double>& sum) {
  const Lanes<double> zero{};
  return (largest - largest) + (sum == sum ? zero : sum);
}

}  // namespace detail

// rows <- w_i(y_t) 2^kWeightShift relative to the likeliest state of each, from log ratios. Returns 0 in lanes that
// hold ordinary evidence only, NaN in the others, whose weights are anything.
template <int S>
struct LaneWeights {
  static constexpr Index kTogether = 1;  // rows at a time: exponentials of several registers do not wait for each other

  static DRHMM_INLINE Lanes<double> weigh(LaneMessage<S>* rows) {
    using Value = Lanes<double>;
    Value* const row = rows->value;
    Value most = row[0];
    for (int i = 1; i < S; ++i) most = detail::larger(row[i], most);
    const Value trouble = detail::trouble(most, rows->sum());
    Value x[S];
    for (int i = 0; i < S; ++i) x[i] = row[i] - most;
    constexpr int kSome = S % 4 == 0 ? 4 : S;
    for (int i = 0; i < S; i += kSome) exponentials_of<kWeightShift, kSome>(x + i);
    for (int i = 0; i < S; ++i) row[i] = x[i];
    return trouble;
  }
};

// Two and three states: the likeliest one needs no exponential.
template <>
struct LaneWeights<2> {
  static constexpr Index kTogether = 4;

  static DRHMM_INLINE Lanes<double> weigh(LaneMessage<2>* rows) {
    using Value = Lanes<double>;
    const Value one = all(static_cast<double>(std::int64_t{1} << kWeightShift));
    Value trouble{}, other[kTogether];
    for (int k = 0; k < kTogether; ++k) {
      const Value &a = rows[k].value[0], &b = rows[k].value[1];
      const Value most = detail::larger(a, b);
      trouble += detail::trouble(most, a + b);
      other[k] = detail::smaller(a, b) - most;
    }
    exponentials_of<kWeightShift, kTogether>(other);
    for (int k = 0; k < kTogether; ++k) {
      Value &a = rows[k].value[0], &b = rows[k].value[1];
      const auto is_a = a > b;
      a = is_a ? one : other[k];
      b = is_a ? other[k] : one;
    }
    return trouble;
  }
};

template <>
struct LaneWeights<3> {
  static constexpr Index kTogether = 2;

  static DRHMM_INLINE Lanes<double> weigh(LaneMessage<3>* rows) {
    using Value = Lanes<double>;
    const Value one = all(static_cast<double>(std::int64_t{1} << kWeightShift));
    Value trouble{}, x[2 * kTogether];
    for (int k = 0; k < kTogether; ++k) {
      const Value &a = rows[k].value[0], &b = rows[k].value[1], &c = rows[k].value[2];
      const Value high = detail::larger(a, b), most = detail::larger(high, c);
      trouble += detail::trouble(most, a + b + c);
      x[2 * k] = detail::smaller(a, b) - most;
      x[2 * k + 1] = detail::smaller(high, c) - most;
    }
    exponentials_of<kWeightShift, 2 * kTogether>(x);
    for (int k = 0; k < kTogether; ++k) {
      Value &a = rows[k].value[0], &b = rows[k].value[1], &c = rows[k].value[2];
      const Value low = x[2 * k], middle = x[2 * k + 1];
      const auto is_a = a > b, is_c = c > detail::larger(a, b);
      const Value high = is_c ? middle : one;  // of a and b
      a = is_a ? high : low;
      b = is_a ? low : high;
      c = is_c ? one : middle;
    }
    return trouble;
  }
};

}  // namespace drhmm
