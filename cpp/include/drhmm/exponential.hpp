// e^x for many x <= 0 at a time.
#pragma once

#include <cstdint>
#include <cstring>

#include "drhmm/lanes.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// x <- e^x 2^kShift for n registers of x <= 0; exactly 0 where that is below double's normal numbers,
// x < -708 - kShift log 2. Relative error below 3e-16. Step by step for all registers, as each of them waits for
// itself.
template <int kShift, int n>
DRHMM_INLINE void exponentials_of(Lanes<double>* x) {
  using Value = Lanes<double>;
  // x = k log 2 + r; the first part of log 2 has so few digits that its product with k is exact.
  constexpr double kLog2High = 6.93147180369123816490e-01;
  constexpr double kLog2Low = 1.90821492927058770002e-10;
  constexpr double kUnit = static_cast<double>(std::int64_t{1} << kShift);
  constexpr double kCoefficients[] = {2.763229322970563e-07,
                                      2.7557622499311845e-06,
                                      2.480148652158092e-05,
                                      0.00019841269432715298,
                                      0.0013888888951223825,
                                      0.008333333333559253,
                                      0.04166666666649277,
                                      0.1666666666666617,
                                      0.5000000000000018,
                                      1.0,
                                      1.0};
  Nearest<double> nearest[n];
  Value r[n], p[n];
  for (int i = 0; i < n; ++i) {
    nearest[i] = Nearest<double>(x[i] * 1.4426950408889634);
    const Value k = nearest[i].n();
    r[i] = (x[i] - k * kLog2High) - k * kLog2Low;
    p[i] = all(kUnit * 2.4994314816236953e-08);
  }
  for (const double coefficient : kCoefficients) {
    for (int i = 0; i < n; ++i) p[i] = p[i] * r[i] + kUnit * coefficient;
  }
  for (int i = 0; i < n; ++i) x[i] = nearest[i].times(p[i], x[i], -708.0 - kShift * 0.6931471805599453);
}

// values <- e^values 2^kShift for n values <= 0.
template <int kShift = 0>
inline void exponentials(double* values, Index n) {
  constexpr Index kStep = kLanes<double>;
  Index i = 0;
  Lanes<double> some;
  for (; i + kStep <= n; i += kStep) {
    some = load(values + i);
    exponentials_of<kShift, 1>(&some);
    store<double>(some, values + i);
  }
  if (i < n) {
    some = Lanes<double>{};
    std::memcpy(&some, values + i, static_cast<std::size_t>(n - i) * sizeof(double));
    exponentials_of<kShift, 1>(&some);
    std::memcpy(values + i, &some, static_cast<std::size_t>(n - i) * sizeof(double));
  }
}

}  // namespace drhmm
