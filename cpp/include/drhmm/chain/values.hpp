// The number types of recursions, with common names.
//
//   double         one sequence, or one stretch of it
//   Lanes<double>  several stretches side by side, one in each lane
//   Scaled         one sequence whose messages leave the range of double
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "drhmm/chain/scaled.hpp"
#include "drhmm/system/lanes.hpp"

namespace drhmm {

// The number of stretches in one value.
template <class Value>
constexpr int kWidth = std::is_same_v<Value, Lanes<double>> ? kLanes<double> : 1;

template <class Value>
constexpr bool is_scaled = std::is_same_v<Value, Scaled>;

constexpr double kNever = -HUGE_VAL;  // the logarithm of 0

template <class Value>
DRHMM_INLINE Value same(double number) {
  if constexpr (is_scaled<Value>) {
    return Scaled(number);
  } else {
    return Value{} + number;
  }
}

// Copies values one by one: memcpy may store registers in halves, and loading them whole would then stall.
template <class Value>
DRHMM_INLINE void copy_values(const Value* from, Index n, Value* to) {
  for (Index i = 0; i < n; ++i) to[i] = from[i];
}

// The sum of contiguous values, and their products with a factor; vectorised for one message of doubles.
template <class Value>
DRHMM_INLINE Value sum(const Value* values, Index n) {
  Value total{};
  Index i = 0;
  if constexpr (std::is_same_v<Value, double>) {
    Lanes<double> some{};
    for (; i + kLanes<double> <= n; i += kLanes<double>) some += load(values + i);
    for (int l = 0; l < kLanes<double>; ++l) total += lane_of(some, l);
  }
  for (; i < n; ++i) total += values[i];
  return total;
}
template <class Value>
DRHMM_INLINE void multiply(Value* values, Index n, const Value& factor) {
  Index i = 0;
  if constexpr (std::is_same_v<Value, double>) {
    for (; i + kLanes<double> <= n; i += kLanes<double>) store<double>(load(values + i) * factor, values + i);
  }
  for (; i < n; ++i) values[i] = values[i] * factor;
}

template <class Value>
DRHMM_INLINE double lane(const Value& value, int l) {
  if constexpr (std::is_same_v<Value, double>) {
    return (void)l, value;
  } else {
    return lane_of(value, l);
  }
}

template <class Value>
DRHMM_INLINE void put(Value& value, int l, double number) {
  if constexpr (std::is_same_v<Value, double>) {
    (void)l;
    value = number;
  } else {
    set_lane(value, l, number);
  }
}

// Whether value < limit in every lane; false for NaN.
template <class Value>
DRHMM_INLINE bool all_below(const Value& value, double limit) {
#if defined(__AVX512F__) && defined(DRHMM_HAS_VECTORS)
  if constexpr (kWidth<Value> > 1) return _mm512_cmp_pd_mask(value, _mm512_set1_pd(limit), _CMP_NLT_UQ) == 0;
#endif
  for (int l = 0; l < kWidth<Value>; ++l) {
    if (!(lane(value, l) < limit)) return false;
  }
  return true;
}

// Unsigned integers with the bits of a value.
template <class Value>
using Bits = std::conditional_t<std::is_same_v<Value, double>, std::uint64_t, typename Register<double>::Unsigned>;

// 1 for a number below 0, and 0 for 0 or above.
inline std::uint64_t sign_bit(double number) {
  std::uint64_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits >> 63;
}

// The biased exponent of a positive value: e + 1023 for a value in [2^e, 2^(e+1)).
template <class Value>
DRHMM_INLINE Bits<Value> biased_exponent(const Value& value) {
  Bits<Value> bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits >> 52 & std::uint64_t{0x7FF};
}

// 2^(level - e) for the biased exponent of a value in [2^e, 2^(e+1)).
template <class Value, int level>
DRHMM_INLINE Value power_to_level(const Bits<Value>& biased) {
  const Bits<Value> bits = (std::uint64_t{2046 + level} - biased) << 52;
  Value power;
  std::memcpy(&power, &bits, sizeof power);
  return power;
}

}  // namespace drhmm
