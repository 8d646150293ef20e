// Messages between double and Scaled.
#pragma once

#include <algorithm>
#include <vector>

#include "drhmm/chain/scaled.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// A message that double holds without the floor: positive entries are at least 2^-850 of the sum.
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
