// Keeps messages within the range of double, and converts them to Scaled and back.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "drhmm/chain/values.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// Rescales the messages of one stretch, or of one in each lane, to a sum of 2^kTop. In chains that are not mixing,
// raises possible entries below 2^-950 of the sum to that floor.
template <class Value, int N>
class MessageRange {
 public:
  static constexpr double kLog2 = 0.6931471805599453;

  MessageRange(bool is_mixing, Index n_states, Index stride)
      : is_mixing_(is_mixing), n_states_(n_states), stride_(stride) {}

  Value hard{};  // 1 in lanes with unusable answers
  bool at_floor = false;
  Value pivots{};  // sum of the pivots of all weights

  void forget_floors() {
    hard = Value{};
    at_floor = false;
  }

  DRHMM_INLINE Value sum_of(const Value* m) const { return sum(m, n_states()); }

  // Multiplies by a power of two, to a sum of about 2^kTop; possible entries stay at or above the floor. Adds up the
  // exponents of forward messages, for the likelihood.
  template <bool is_forward>
  DRHMM_INLINE void rescale(Value* m) {
    const Value sum = sum_of(m), floor = same<Value>(kFloor), none{}, one = same<Value>(1.0);
    hard = sum > 0x1p-500 ? hard : one;  // also NaN; no power of two lifts a smaller sum to 2^kTop
    const Bits<Value> biased = biased_exponent(sum);
    if (is_forward) exponents_ += biased, ++n_rescaled_;
    const Value factor = power_to_level<Value, kTop>(biased);
    if (is_mixing_) {
      for (Index i = 0; i < stride(); ++i) m[i] = m[i] * factor;
      return;
    }
    Value least = one;
    for (Index i = 0; i < stride(); ++i) {
      const Value x = m[i] * factor;
      const Value held = x > floor ? x : floor;
      m[i] = x > none ? held : none;
      least = m[i] == floor ? none : least;
    }
    if (!at_floor) at_floor = !all_below(one - least, 0.5);
  }

  // Sets b to 0 in unreachable states, where f is 0: their evidence could outweigh that of all others.
  DRHMM_INLINE void drop_unreachable(const Value* f, Value* b) const {
    const Value none{};
    for (Index i = 0; i < n_states(); ++i) b[i] = f[i] > none ? b[i] : none;
  }

  // Sets `hard` where an entry at the floor, of either message, has more than 2^-400 of the posterior.
  DRHMM_INLINE void verify(const Value* f, const Value* b) {
    if (!at_floor) return;
    const Value floor = same<Value>(kFloor), one = same<Value>(1.0), none{};
    Value sum{}, held{};
    for (Index i = 0; i < n_states(); ++i) {
      const Value p = f[i] * b[i];
      const Value least = f[i] < b[i] ? f[i] : b[i];
      const Value share = least > floor ? none : p;
      held = share > held ? share : held;
      sum += p;
    }
    hard = sum > kSmallestSum ? hard : one;
    hard = held > sum * kMatters ? one : hard;
  }

  // The log of the total divisor of forward messages, and of the sum of a message before division.
  double scale(int l) const {
    const double exponent = static_cast<double>(exponent_of(l)) - static_cast<double>(n_rescaled_) * (1023 + kTop);
    return lane(pivots, l) + kLog2 * exponent;
  }
  double level(int l, const Value* m) const { return scale(l) + std::log(lane(sum_of(m), l)); }
  double level_of_start(int l) const { return scale(l) + kTop * kLog2; }

 private:
  static constexpr int kTop = 500;
  static constexpr double kFloor = 0x1p-450, kMatters = 0x1p-400, kSmallestSum = 0x1p-600;

  Index n_states() const { return N > 0 ? N : n_states_; }
  Index stride() const { return N > 0 ? N : stride_; }
  std::uint64_t exponent_of(int l) const {
    std::uint64_t exponent;
    std::memcpy(&exponent, reinterpret_cast<const char*>(&exponents_) + l * 8, sizeof exponent);
    return exponent;
  }

  bool is_mixing_;
  Index n_states_, stride_;
  Bits<Value> exponents_{};  // of the divisors of forward messages, biased
  std::int64_t n_rescaled_ = 0;
};

// Whether a message needs no floor: positive entries are at least 2^-850 of the sum.
inline bool is_clean(const std::vector<double>& message) {
  return std::none_of(message.begin(), message.end(), [](double x) { return x > 0 && x < 0x1p-350; });
}

inline std::vector<Scaled> widened(const std::vector<double>& message, Index stride) {
  std::vector<Scaled> result(static_cast<std::size_t>(stride));
  for (std::size_t i = 0; i < std::min(result.size(), message.size()); ++i) result[i] = Scaled(message[i]);
  return result;
}

inline std::vector<double> narrowed(const std::vector<Scaled>& message, Index stride) {
  const std::int64_t most = std::max_element(message.begin(), message.end())->exponent();
  std::vector<double> result(static_cast<std::size_t>(stride), 0.0);
  for (std::size_t i = 0; i < std::min(result.size(), message.size()); ++i) {
    if (!(message[i] > Scaled(0))) continue;
    result[i] = std::max(double(message[i].times_power_of_two(500 - most)), 0x1p-450);
  }
  return result;
}

}  // namespace drhmm
