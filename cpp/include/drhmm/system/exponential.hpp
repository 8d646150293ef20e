// 2^x and e^x for many x <= 0 at a time.
#pragma once

#include <cstdint>
#include <cstring>

#include "drhmm/system/lanes.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

namespace detail {

template <class Real>
constexpr int kMantissa = sizeof(Real) == sizeof(double) ? 52 : 23;  // bits

#if defined(DRHMM_HAS_SCALING)
// Registers hold the fractional powers of two. The pieces are so small that polynomials of half the degree suffice.
template <class Real>
struct Roots;

template <>
struct Roots<double> {
  // 2^(k/16)
  alignas(64) static constexpr double kValues[] = {1.0,
                                                   1.0442737824274138,
                                                   1.0905077326652577,
                                                   1.1387886347566916,
                                                   1.189207115002721,
                                                   1.241857812073484,
                                                   1.2968395546510096,
                                                   1.3542555469368927,
                                                   1.4142135623730951,
                                                   1.4768261459394993,
                                                   1.5422108254079407,
                                                   1.6104903319492543,
                                                   1.681792830507429,
                                                   1.7562521603732995,
                                                   1.8340080864093424,
                                                   1.9152065613971474};
  static constexpr double kRound = 0x1.8p48;  // the last digit of numbers in this range stands for 1/16

  // Looks up the roots that the last digits of rounded numbers stand for.
  static DRHMM_INLINE Lanes<double> of(const Lanes<double>& rounded) {
    __m512i index;
    std::memcpy(&index, &rounded, sizeof index);
    return _mm512_permutex2var_pd(load(kValues), index, load(kValues + 8));
  }
  // x * 2^floor(n), but 0 where t < least.
  static DRHMM_INLINE Lanes<double> scaled(__m512d x, __m512d n, __m512d t, double least) {
    return _mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(t, _mm512_set1_pd(least), _CMP_NLT_UQ), x, n);
  }
};

template <>
struct Roots<float> {
  // 2^(k/32)
  alignas(64) static constexpr float kValues[] = {
      1.0F,         1.021897197F, 1.044273734F, 1.06714046F,  1.090507746F, 1.114386797F, 1.138788581F, 1.163724899F,
      1.189207077F, 1.215247393F, 1.241857767F, 1.269050956F, 1.296839595F, 1.325236678F, 1.354255557F, 1.383909941F,
      1.414213538F, 1.445180774F, 1.476826191F, 1.509164453F, 1.542210817F, 1.575980902F, 1.610490322F, 1.645755529F,
      1.681792855F, 1.718619347F, 1.75625217F,  1.794709086F, 1.834008098F, 1.874167681F, 1.915206552F, 1.957144141F};
  static constexpr float kRound = 0x1.8p18F;  // the last digit of numbers in this range stands for 1/32

  static DRHMM_INLINE Lanes<float> of(const Lanes<float>& rounded) {
    __m512i index;
    std::memcpy(&index, &rounded, sizeof index);
    return _mm512_permutex2var_ps(load(kValues), index, load(kValues + 16));
  }
  static DRHMM_INLINE Lanes<float> scaled(__m512 x, __m512 n, __m512 t, float least) {
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(t, _mm512_set1_ps(least), _CMP_NLT_UQ), x, n);
  }
};

// The powers 2^n of the multiples n of 1 / kPieces that are nearest to numbers t.
template <class Real>
class NearestPower {
 public:
  static constexpr int kPieces = sizeof(Roots<Real>::kValues) / sizeof(Real);

  NearestPower() = default;
  explicit DRHMM_INLINE NearestPower(const Lanes<Real>& t) : rounded_(t + Roots<Real>::kRound) {}
  DRHMM_INLINE Lanes<Real> n() const { return rounded_ - Roots<Real>::kRound; }
  // (1 + r c) 2^n, but exactly 0 where x < least, whatever n is, and NaN where x is NaN.
  template <bool keeps_nan>
  DRHMM_INLINE Lanes<Real> times(const Lanes<Real>& r, const Lanes<Real>& c, const Lanes<Real>& x, Real least) const {
    const Lanes<Real> root = Roots<Real>::of(rounded_);
    return Roots<Real>::scaled(root * (r * c) + root, rounded_ - Roots<Real>::kRound, x, least);
  }

 private:
  Lanes<Real> rounded_;
};
#else
// The powers 2^n of the multiples n of 1 / kPieces that are nearest to numbers t.
template <class Real>
class NearestPower {
 public:
  static constexpr int kPieces = 1;

  NearestPower() = default;
  explicit DRHMM_INLINE NearestPower(const Lanes<Real>& t) : rounded_(t + kRound) {}
  DRHMM_INLINE Lanes<Real> n() const { return rounded_ - kRound; }
  // (1 + r c) 2^n, but exactly 0 where x < least, whatever n is; with keeps_nan, NaN where x is NaN.
  template <bool keeps_nan>
  DRHMM_INLINE Lanes<Real> times(const Lanes<Real>& r, const Lanes<Real>& c, const Lanes<Real>& x, Real least) const {
    // The low bits of n + kRound are n, which is added to the exponent of 1 + r c.
    Lanes<Real> result = r * c + Real(1);
    typename Register<Real>::Unsigned power, bits;  // wraps around where x < least
    std::memcpy(&power, &rounded_, sizeof power);
    std::memcpy(&bits, &result, sizeof bits);
    bits += power << kMantissa<Real>;
    std::memcpy(&result, &bits, sizeof result);
    const Lanes<Real> zero{};
    if constexpr (keeps_nan) result = x == x ? result : x;  // the sum of bits may be a number where x is NaN
    return x < least ? zero : result;
  }

 private:
  // The last digit of numbers in this range stands for 1.
  static constexpr Real kRound = Real(3) * Real(std::int64_t{1} << (kMantissa<Real> - 1));

  Lanes<Real> rounded_;
};
#endif

// The polynomials c(x) with 2^x = 1 + x c(x), and with e^x = 1 + x c(x), for |x| up to half a piece, or log 2 times
// that. They have the smallest relative errors: in double 2.8e-16 or, for small pieces, 1.5e-17, in float 1.1e-7 or
// 5.4e-8.
template <class Real, int kPieces>
struct Coefficients;

template <>
struct Coefficients<float, 32> {
  static constexpr float kOf2[] = {0.2402265075230146F, 0.6931573309770357F};
};

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

// c <- c(x) for n registers by Horner's rule, one step for all of them at a time, to hide the latency of a step.
template <int n, class Real, std::size_t n_coefficients>
DRHMM_INLINE void polynomial(const Real (&coefficients)[n_coefficients], const Lanes<Real>* x, Lanes<Real>* c) {
  for (int i = 0; i < n; ++i) c[i] = coefficients[0] * x[i] + coefficients[1];
  for (std::size_t k = 2; k < n_coefficients; ++k) {
    for (int i = 0; i < n; ++i) c[i] = c[i] * x[i] + coefficients[k];
  }
}

}  // namespace detail

// x <- 2^x for n registers of x <= 0; x > 0 counts as 0; exactly 0 for x below -1021, or -125 in float.
template <int n, class Real>
DRHMM_INLINE void exp2_of_negatives(Lanes<Real>* x) {
  using Nearest = detail::NearestPower<Real>;
  constexpr Real kLeast = sizeof(Real) == sizeof(double) ? -1021 : -125;
  const Lanes<Real> zero{};
  Nearest nearest[n];
  Lanes<Real> fraction[n], c[n];
  for (int i = 0; i < n; ++i) {
    x[i] = zero < x[i] ? zero : x[i];
    nearest[i] = Nearest(x[i]);
    fraction[i] = x[i] - nearest[i].n();
  }
  detail::polynomial<n>(detail::Coefficients<Real, Nearest::kPieces>::kOf2, fraction, c);
  for (int i = 0; i < n; ++i) x[i] = nearest[i].template times<false>(fraction[i], c[i], x[i], kLeast);
}

// x <- e^x for n registers of x <= 0; exactly 0 where that is below double's normal numbers, x < -708. With keeps_nan,
// NaN stays NaN; without it, NaN gives any number. Relative error below 3e-16.
template <int n, bool keeps_nan = true>
DRHMM_INLINE void exponentials_of(Lanes<double>* x) {
  using Nearest = detail::NearestPower<double>;
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
  for (int i = 0; i < n; ++i) x[i] = nearest[i].template times<keeps_nan>(r[i], c[i], x[i], -708.0);
}

// values <- e^values for n values <= 0.
inline void exponentials(double* values, Index n) {
  constexpr Index kStep = kLanes<double>;
  Index i = 0;
  Lanes<double> some;
  for (; i + kStep <= n; i += kStep) {
    some = load(values + i);
    exponentials_of<1>(&some);
    store<double>(some, values + i);
  }
  if (i < n) {
    some = Lanes<double>{};
    std::memcpy(&some, values + i, static_cast<std::size_t>(n - i) * sizeof(double));
    exponentials_of<1>(&some);
    std::memcpy(values + i, &some, static_cast<std::size_t>(n - i) * sizeof(double));
  }
}
// The same, compiled once.
void many_exponentials(double* values, Index n);

}  // namespace drhmm
