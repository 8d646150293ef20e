// A message in lanes: each lane of a vector register belongs to a sequence, or a stretch, of its own.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "drhmm/lanes.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// One number per state and lane.
template <int S>
struct LaneMessage {
  Lanes<double> value[S];

  static LaneMessage constant(double number) {
    LaneMessage result;
    for (int i = 0; i < S; ++i) result.value[i] = all(number);
    return result;
  }
  // result_j = sum_i value_i matrix_ij
  DRHMM_INLINE LaneMessage times(const double (&matrix)[S][S]) const {
    LaneMessage result;
    for (int j = 0; j < S; ++j) {
      result.value[j] = value[0] * matrix[0][j];
      for (int i = 1; i < S; ++i) result.value[j] += value[i] * matrix[i][j];
    }
    return result;
  }
  DRHMM_INLINE LaneMessage times(const LaneMessage& other) const {
    LaneMessage result;
    for (int i = 0; i < S; ++i) result.value[i] = value[i] * other.value[i];
    return result;
  }
  DRHMM_INLINE LaneMessage times(const Lanes<double>& factor) const {
    LaneMessage result;
    for (int i = 0; i < S; ++i) result.value[i] = value[i] * factor;
    return result;
  }
  DRHMM_INLINE LaneMessage plus(const LaneMessage& other) const {
    LaneMessage result;
    for (int i = 0; i < S; ++i) result.value[i] = value[i] + other.value[i];
    return result;
  }
  DRHMM_INLINE Lanes<double> sum() const {
    Lanes<double> result = value[0];
    for (int i = 1; i < S; ++i) result += value[i];
    return result;
  }
  DRHMM_INLINE LaneMessage normalized() const { return times(1.0 / sum()); }
  // 2^(level - n) for a sum in [2^n, 2^(n+1)).
  template <int level>
  DRHMM_INLINE Lanes<double> factor_to_level() const {
    const Lanes<double> total = sum();
    typename Register<double>::Unsigned bits;  // the compiler may add the constants first, beyond a signed number
    std::memcpy(&bits, &total, sizeof bits);
    bits = (std::uint64_t{2046} << 52) - (bits & (std::uint64_t{0x7FF} << 52)) + (std::uint64_t{level} << 52);
    Lanes<double> power;
    std::memcpy(&power, &bits, sizeof power);
    return power;
  }
  // Lanes of another message where their bits are set.
  DRHMM_INLINE LaneMessage replaced(std::uint8_t bits, const LaneMessage& other) const {
    alignas(64) double flags[kLanes<double>];
    for (int lane = 0; lane < kLanes<double>; ++lane) flags[lane] = bits >> lane & 1;
    const Lanes<double> is_set = load(flags);
    LaneMessage result;
    for (int i = 0; i < S; ++i) result.value[i] = is_set > 0.5 ? other.value[i] : value[i];
    return result;
  }
  std::vector<double> of_lane(Index lane) const {
    std::vector<double> result(S);
    for (int i = 0; i < S; ++i) result[static_cast<std::size_t>(i)] = lane_of(value[i], lane);
    return result;
  }
};

}  // namespace drhmm
