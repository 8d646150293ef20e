// e^x for many x <= 0 at a time.
#pragma once

#include <cstdint>
#include <cstring>

#include "drhmm/lanes.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// e^x 2^kShift for x <= 0; exactly 0 where that is below double's normal numbers, x < -708 - kShift log 2. Relative
// error below 3e-16.
template <int kShift = 0>
DRHMM_INLINE Lanes<double> exponential(Lanes<double> x) {
  // x = k log 2 + r; the first part of log 2 has so few digits that its product with k is exact.
  constexpr double kLog2High = 6.93147180369123816490e-01;
  constexpr double kLog2Low = 1.90821492927058770002e-10;
  constexpr double kUnit = static_cast<double>(std::int64_t{1} << kShift);
  using Value = Lanes<double>;
  const Nearest<double> nearest(x * 1.4426950408889634);
  const Value k = nearest.n();
  const Value r = (x - k * kLog2High) - k * kLog2Low;
  Value p = kUnit * 2.4994314816236953e-08 * r + kUnit * 2.763229322970563e-07;
  p = p * r + kUnit * 2.7557622499311845e-06;
  p = p * r + kUnit * 2.480148652158092e-05;
  p = p * r + kUnit * 0.00019841269432715298;
  p = p * r + kUnit * 0.0013888888951223825;
  p = p * r + kUnit * 0.008333333333559253;
  p = p * r + kUnit * 0.04166666666649277;
  p = p * r + kUnit * 0.1666666666666617;
  p = p * r + kUnit * 0.5000000000000018;
  p = p * r + kUnit;
  p = p * r + kUnit;
  return nearest.times(p, x, -708.0 - kShift * 0.6931471805599453);
}

// values <- e^values 2^kShift for n values <= 0.
template <int kShift = 0>
inline void exponentials(double* values, Index n) {
  constexpr Index kStep = kLanes<double>;
  Index i = 0;
  for (; i + kStep <= n; i += kStep) store<double>(exponential<kShift>(load(values + i)), values + i);
  if (i < n) {
    double rest[kStep] = {};
    std::memcpy(rest, values + i, static_cast<std::size_t>(n - i) * sizeof(double));
    store<double>(exponential<kShift>(load(rest)), rest);
    std::memcpy(values + i, rest, static_cast<std::size_t>(n - i) * sizeof(double));
  }
}

}  // namespace drhmm
