// The evidence of frames as weights, one frame in each lane.
#pragma once

#include <cmath>

#include "drhmm/exponential.hpp"
#include "drhmm/recursion/lane_message.hpp"
#include "drhmm/recursion/level.hpp"

namespace drhmm {

// row <- w_i(y_t) 2^kWeightShift relative to the likeliest state, from log ratios; NaN somewhere if there are entries
// that are NaN or +inf, or none that is finite (-inf excludes a state).
template <int S>
DRHMM_INLINE void weigh(LaneMessage<S>& row) {
  constexpr int kSome = S % 4 == 0 ? 4 : S;
  Lanes<double> most = row.value[0];
  for (int i = 1; i < S; ++i) most = row.value[i] > most ? row.value[i] : most;
  for (int i = 0; i < S; ++i) row.value[i] -= most;
  for (int i = 0; i < S; i += kSome) exponentials_of<kWeightShift, kSome>(row.value + i);
}

// The same where missing frames, of which all entries are NaN, weigh all states alike.
template <int S>
DRHMM_INLINE void weigh_or_miss(LaneMessage<S>& row) {
  const Lanes<double> zero{};
  auto is_missing = row.value[0] != row.value[0];
  for (int i = 1; i < S; ++i) is_missing = is_missing & (row.value[i] != row.value[i]);
  for (int i = 0; i < S; ++i) row.value[i] = is_missing ? zero : row.value[i];
  weigh(row);
}

// The same for a few rows at a time, so that exponentials run side by side, in a quicker way where there is one; NaN
// may also be the answer to several entries that are -inf, and is none to a single +inf, which excludes all others.
template <int S>
struct QuickWeights {
  static constexpr Index kTogether = 1;

  static DRHMM_INLINE void weigh(LaneMessage<S>* rows) { drhmm::weigh(*rows); }
};

// Two and three states: the likeliest one needs no exponential.
template <>
struct QuickWeights<2> {
  static constexpr Index kTogether = 4;

  static DRHMM_INLINE void weigh(LaneMessage<2>* rows) {
    const Lanes<double> one = all(std::ldexp(1.0, kWeightShift)), zero{};
    Lanes<double> difference[kTogether], other[kTogether];
    for (int k = 0; k < kTogether; ++k) {
      difference[k] = rows[k].value[0] - rows[k].value[1];
      other[k] = negative(difference[k]);
    }
    exponentials_of<kWeightShift, kTogether>(other);
    for (int k = 0; k < kTogether; ++k) {
      const auto is_first = difference[k] > zero;
      rows[k].value[0] = is_first ? one : other[k];
      rows[k].value[1] = is_first ? other[k] : one;
    }
  }
};

template <>
struct QuickWeights<3> {
  static constexpr Index kTogether = 2;

  static DRHMM_INLINE void weigh(LaneMessage<3>* rows) {
    using Value = Lanes<double>;
    const Value one = all(std::ldexp(1.0, kWeightShift)), zero{};
    Value x[2 * kTogether], by_first[kTogether], by_two[kTogether];
    for (int k = 0; k < kTogether; ++k) {
      const Value &a = rows[k].value[0], &b = rows[k].value[1], &c = rows[k].value[2];
      by_first[k] = a - b;
      by_two[k] = (by_first[k] > zero ? a : b) - c;
      x[2 * k] = negative(by_first[k]) + (by_two[k] < zero ? by_two[k] : zero);  // the smaller one of a and b
      x[2 * k + 1] = negative(by_two[k]);                                        // the larger one, or c
    }
    exponentials_of<kWeightShift, 2 * kTogether>(x);
    for (int k = 0; k < kTogether; ++k) {
      const Value low = x[2 * k], middle = x[2 * k + 1];
      const auto is_first = by_first[k] > zero, is_third = by_two[k] < zero;
      const Value high = is_third ? middle : one;
      rows[k].value[0] = is_first ? high : low;
      rows[k].value[1] = is_first ? low : high;
      rows[k].value[2] = is_third ? one : middle;
    }
  }
};

}  // namespace drhmm
