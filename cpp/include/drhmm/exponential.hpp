// 2^x and e^x for many x <= 0 at a time.
#pragma once

#include <cstdint>
#include <cstring>

#include "drhmm/lanes.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

namespace detail {

template <class Real>
constexpr int kMantissa = sizeof(Real) == sizeof(double) ? 52 : 23;  // bits

// 2^kShift times the powers 2^n of the multiples n of 1 / kPieces that are nearest to numbers t.
template <class Real, int kShift>
class NearestPower {
 public:
  static constexpr int kPieces = 1;

  NearestPower() = default;
  explicit DRHMM_INLINE NearestPower(const Lanes<Real>& t) : rounded_(t + kRound) {}
  DRHMM_INLINE Lanes<Real> n() const { return rounded_ - kRound; }
  // (1 + r c) 2^n, but exactly 0 where x < least, and NaN where x is; there, n may be anything.
  DRHMM_INLINE Lanes<Real> times(const Lanes<Real>& r, const Lanes<Real>& c, const Lanes<Real>& x, Real least) const {
    // The low bits of n + kRound are n, which is added to the exponent of 1 + r c.
    Lanes<Real> result = r * c + Real(1);
    typename Register<Real>::Unsigned power, bits;  // wraps where x < least
    std::memcpy(&power, &rounded_, sizeof power);
    std::memcpy(&bits, &result, sizeof bits);
    bits += power << kMantissa<Real>;
    std::memcpy(&result, &bits, sizeof result);
    const Lanes<Real> zero{}, other = x < least ? zero : x;
    return x >= least ? result : other;
  }

 private:
  // The last digit of numbers in this range stands for 1.
  static constexpr Real kRound = Real(3) * Real(std::int64_t{1} << (kMantissa<Real> - 1)) + Real(kShift);

  Lanes<Real> rounded_;
};

#if defined(DRHMM_HAS_SCALING)
template <int kShift>
class NearestPower<float, kShift> {
 public:
  static constexpr int kPieces = 1;

  NearestPower() = default;
  explicit DRHMM_INLINE NearestPower(const Lanes<float>& t) : n_(_mm512_roundscale_ps(t, 0)) {}
  DRHMM_INLINE Lanes<float> n() const { return n_; }
  DRHMM_INLINE Lanes<float> times(const Lanes<float>& r, const Lanes<float>& c, const Lanes<float>& x,
                                  float least) const {
    static_assert(kShift == 0);
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(least), _CMP_NLT_UQ), r * c + 1.0F, n_);
  }

 private:
  Lanes<float> n_;
};

// Pieces so small that polynomials of half the degree will do; what 2^n has beside powers of two stands in registers.
template <int kShift>
class NearestPower<double, kShift> {
 public:
  static constexpr int kPieces = 16;

  NearestPower() = default;
  explicit DRHMM_INLINE NearestPower(const Lanes<double>& t) : rounded_(t + kRound) {}
  DRHMM_INLINE Lanes<double> n() const { return rounded_ - kRound; }
  DRHMM_INLINE Lanes<double> times(const Lanes<double>& r, const Lanes<double>& c, const Lanes<double>& x,
                                   double least) const {
    __m512i index;
    std::memcpy(&index, &rounded_, sizeof index);
    const Lanes<double> root = _mm512_permutex2var_pd(load(kRoots), index, load(kRoots + kPieces / 2));
    // Multiplies by 2 to the largest integer that is at most n.
    return _mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(x, _mm512_set1_pd(least), _CMP_NLT_UQ), root * (r * c) + root,
                                  n());
  }

 private:
  static constexpr double kRound = 0x1.8p48;  // the last digit of numbers in this range stands for 1/16
  static constexpr double kUnit = static_cast<double>(std::int64_t{1} << kShift);
  // 2^(kShift + k/16)
  alignas(64) static constexpr double kRoots[kPieces] = {
      kUnit * 0x1.0000000000000p+0, kUnit * 0x1.0b5586cf9890fp+0, kUnit * 0x1.172b83c7d517bp+0,
      kUnit * 0x1.2387a6e756238p+0, kUnit * 0x1.306fe0a31b715p+0, kUnit * 0x1.3dea64c123422p+0,
      kUnit * 0x1.4bfdad5362a27p+0, kUnit * 0x1.5ab07dd485429p+0, kUnit * 0x1.6a09e667f3bcdp+0,
      kUnit * 0x1.7a11473eb0187p+0, kUnit * 0x1.8ace5422aa0dbp+0, kUnit * 0x1.9c49182a3f090p+0,
      kUnit * 0x1.ae89f995ad3adp+0, kUnit * 0x1.c199bdd85529cp+0, kUnit * 0x1.d5818dcfba487p+0,
      kUnit * 0x1.ea4afa2a490dap+0};

  Lanes<double> rounded_;
};
#endif

// The c(x) with 2^x = 1 + x c(x), and those with e^x = 1 + x c(x), for numbers x that are at most half a piece, or log
// 2 times that: with the smallest relative errors, 2.1e-16, or 1.5e-17 for small pieces, and 9.2e-8 in float.
template <class Real, int kPieces>
struct Coefficients;

template <>
struct Coefficients<float, 1> {
  static constexpr float kOf2[] = {0.0013264723341163825F, 0.009671518332900475F, 0.05550733804893595F,
                                   0.24022242000119037F, 0.6931469775381439F};
};

template <>
struct Coefficients<double, 1> {
  static constexpr double kOf2[] = {7.037279530582804e-09,  1.0208537904552164e-07, 1.3215662831846104e-06,
                                    1.5252658116561384e-05, 0.00015403529961135955, 0.0013333558228561476,
                                    0.00961812910803459,    0.05550410866445883,    0.24022650695908768,
                                    0.6931471805599497};
  static constexpr double kOfE[] = {2.4994314816236953e-08,
                                    2.763229322970563e-07,
                                    2.7557622499311845e-06,
                                    2.480148652158092e-05,
                                    0.00019841269432715298,
                                    0.0013888888951223825,
                                    0.008333333333559253,
                                    0.04166666666649277,
                                    0.1666666666666617,
                                    0.5000000000000018,
                                    1.0};
};

template <>
struct Coefficients<double, 16> {
  static constexpr double kOf2[] = {0.00015403724019468894, 0.0013333781621472902, 0.009618129106919254,
                                    0.05550410865663603,    0.24022650695910075,   0.6931471805599457};
  static constexpr double kOfE[] = {0.001388906347556763, 0.008333473002881155, 0.04166666666359425,
                                    0.16666666664208724,  0.5000000000000001,   1.0000000000000007};
};

// c <- c(x) for n registers by Horner's rule, step by step for all of them, as each waits for itself.
template <int n, class Real, std::size_t n_coefficients>
DRHMM_INLINE void polynomial(const Real (&coefficients)[n_coefficients], const Lanes<Real>* x, Lanes<Real>* c) {
  for (int i = 0; i < n; ++i) c[i] = coefficients[0] * x[i] + coefficients[1];
  for (std::size_t k = 2; k < n_coefficients; ++k) {
    for (int i = 0; i < n; ++i) c[i] = c[i] * x[i] + coefficients[k];
  }
}

}  // namespace detail

// 2^x for x <= 0, and for x > 0 as for 0; exactly 0 below the range of normal numbers.
template <class Real>
DRHMM_INLINE Lanes<Real> exp2_of_negative(Lanes<Real> x) {
  using Nearest = detail::NearestPower<Real, 0>;
  constexpr Real kLeast = sizeof(Real) == sizeof(double) ? -1021 : -125;
  const Lanes<Real> zero{};
  x = zero < x ? zero : x;
  const Nearest nearest(x);
  const Lanes<Real> fraction = x - nearest.n();
  Lanes<Real> c;
  detail::polynomial<1>(detail::Coefficients<Real, Nearest::kPieces>::kOf2, &fraction, &c);
  return nearest.times(fraction, c, x, kLeast);
}

// x <- e^x 2^kShift for n registers of x <= 0; exactly 0 where that is below double's normal numbers,
// x < -708 - kShift log 2, and NaN where x is. Relative error below 3e-16.
template <int kShift, int n>
DRHMM_INLINE void exponentials_of(Lanes<double>* x) {
  using Nearest = detail::NearestPower<double, kShift>;
  // x = k log 2 + r; the first part of log 2 has so few digits that its product with k is exact.
  constexpr double kLog2High = 6.93147180369123816490e-01;
  constexpr double kLog2Low = 1.90821492927058770002e-10;
  Nearest nearest[n];
  Lanes<double> r[n], c[n];
  for (int i = 0; i < n; ++i) {
    nearest[i] = Nearest(x[i] * 1.4426950408889634);
    const Lanes<double> k = nearest[i].n();
    r[i] = (x[i] - k * kLog2High) - k * kLog2Low;
  }
  detail::polynomial<n>(detail::Coefficients<double, Nearest::kPieces>::kOfE, r, c);
  for (int i = 0; i < n; ++i) x[i] = nearest[i].times(r[i], c[i], x[i], -708.0 - kShift * 0.6931471805599453);
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
