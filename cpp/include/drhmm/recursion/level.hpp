// Where in double's range the messages of mixing chains are kept: high enough that a state whose posterior is a normal
// number keeps all of its digits.
//
// In a mixing chain a state can be 2^20 times as probable before a frame as the one that the frame speaks for, and
// again 2^20 times by what comes after it: its weight may be 2^-40 of its posterior.
#pragma once

#include <cstdint>
#include <cstring>

namespace drhmm {

// Weights of states, relative to the likeliest state of a frame, are kept times 2^kWeightShift.
constexpr int kWeightShift = 32;

// 2^(level - n) for a number in [2^n, 2^(n+1)); the number is at least 2^(level - 1023).
inline double factor_to_level(double number, int level) {
  std::int64_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  bits = (std::int64_t{2046} << 52) - (bits & (std::int64_t{0x7FF} << 52)) + level * (std::int64_t{1} << 52);
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

// Whether a first message, which is at level 0 where the start allows the state that the first frame speaks for, is so
// small that weights relative to that state have lost the digits of the others: a start at its own state is at 2^-20 or
// above, and with 2^-20 for what comes after it and 64 states, 2^-30 still leaves room for posteriors of 1e-300.
inline bool starts_elsewhere(double sum) { return !(sum >= 0x1p-30); }

}  // namespace drhmm
