// Several numbers at a time, in the vector registers of the instruction set that this file is compiled for.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "drhmm/types.hpp"

namespace drhmm {

#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64;
#elif defined(__AVX__)
constexpr int kRegisterBytes = 32;
#else
constexpr int kRegisterBytes = 16;
#endif

// How a number is made up: what exp2 needs to build powers of two from bits.
template <class Real>
struct Bits;

template <>
struct Bits<double> {
  using Integer = std::int64_t;
  static constexpr int kMantissa = 52;
  static constexpr double kRound = 0x1.8p52;          // x + kRound - kRound rounds x to an integer
  static constexpr double kSmallestExponent = -1021;  // 2^x below this is taken as 0
};

template <>
struct Bits<float> {
  using Integer = std::int32_t;
  static constexpr int kMantissa = 23;
  static constexpr float kRound = 0x1.8p23F;
  static constexpr float kSmallestExponent = -125;
};

// DRHMM_SCALAR: as a compiler without vector types sees it, to test that.
#if defined(__GNUC__) && defined(__AVX512F__) && !defined(DRHMM_SCALAR)
#define DRHMM_HAS_SCALING  // instructions that round numbers, and multiply them by powers of two
#endif

#if defined(__GNUC__) && !defined(DRHMM_SCALAR)
#define DRHMM_INLINE inline __attribute__((always_inline))
template <class Real>
struct Register;
template <>
struct Register<double> {
  using Value = double __attribute__((vector_size(kRegisterBytes)));
  using Integer = std::int64_t __attribute__((vector_size(kRegisterBytes)));
  using Unsigned = std::uint64_t __attribute__((vector_size(kRegisterBytes)));
};
template <>
struct Register<float> {
  using Value = float __attribute__((vector_size(kRegisterBytes)));
  using Integer = std::int32_t __attribute__((vector_size(kRegisterBytes)));
  using Unsigned = std::uint32_t __attribute__((vector_size(kRegisterBytes)));
};
template <class Real>
constexpr int kLanes = kRegisterBytes / static_cast<int>(sizeof(Real));
#else
#define DRHMM_INLINE inline
// One number at a time where the compiler has no vector types.
template <class Real>
struct Register {
  using Value = Real;
  using Integer = typename Bits<Real>::Integer;
  using Unsigned = std::make_unsigned_t<Integer>;
};
template <class Real>
constexpr int kLanes = 1;
#endif

template <class Real>
using Lanes = typename Register<Real>::Value;

template <class Real>
inline Lanes<Real> load(const Real* from) {
  Lanes<Real> value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class Real>
inline void store(const Lanes<Real>& value, Real* to) {
  std::memcpy(to, &value, sizeof value);
}

template <class Real>
inline Lanes<Real> all(Real value) {
  return Lanes<Real>{} + value;
}

// Says that memory will be read, or written, soon. Any address will do.
#if defined(__GNUC__)
DRHMM_INLINE void prefetch_read(const double* place) { __builtin_prefetch(place, 0); }
DRHMM_INLINE void prefetch_write(const double* place) { __builtin_prefetch(place, 1); }
#else
inline void prefetch_read(const double*) {}
inline void prefetch_write(const double*) {}
#endif

// One of several numbers.
inline double lane_of(const Lanes<double>& value, Index lane) {
  double number;
  std::memcpy(&number, reinterpret_cast<const char*>(&value) + lane * Index{sizeof number}, sizeof number);
  return number;
}

inline void set_lane(Lanes<double>& value, Index lane, double number) {
  std::memcpy(reinterpret_cast<char*>(&value) + lane * Index{sizeof number}, &number, sizeof number);
}

// The integers n that are nearest to numbers, and products with 2^n.
template <class Real>
class Nearest {
 public:
  Nearest() = default;
#if defined(DRHMM_HAS_SCALING)
  explicit DRHMM_INLINE Nearest(const Lanes<Real>& x) : n_(nearest(x)) {}
  DRHMM_INLINE Lanes<Real> n() const { return n_; }
  // p 2^n, but exactly 0 where x < least; there, n may be anything.
  DRHMM_INLINE Lanes<Real> times(const Lanes<Real>& p, const Lanes<Real>& x, Real least) const {
    return scaled(p, n_, x, least);
  }

 private:
  static DRHMM_INLINE __m512d nearest(__m512d x) { return _mm512_roundscale_pd(x, 0); }
  static DRHMM_INLINE __m512 nearest(__m512 x) { return _mm512_roundscale_ps(x, 0); }
  static DRHMM_INLINE __m512d scaled(__m512d p, __m512d n, __m512d x, double least) {
    return _mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(x, _mm512_set1_pd(least), _CMP_NLT_UQ), p, n);
  }
  static DRHMM_INLINE __m512 scaled(__m512 p, __m512 n, __m512 x, float least) {
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(least), _CMP_NLT_UQ), p, n);
  }

  Lanes<Real> n_;
#else
  explicit DRHMM_INLINE Nearest(const Lanes<Real>& x) : rounded_(x + Bits<Real>::kRound) {}
  DRHMM_INLINE Lanes<Real> n() const { return rounded_ - Bits<Real>::kRound; }
  // p 2^n, but exactly 0 where x < least; there, n may be anything.
  DRHMM_INLINE Lanes<Real> times(Lanes<Real> p, const Lanes<Real>& x, Real least) const {
    // The low bits of n + kRound are n, which is added to the exponent of p.
    typename Register<Real>::Unsigned power, bits;  // wraps where x < least
    std::memcpy(&power, &rounded_, sizeof power);
    std::memcpy(&bits, &p, sizeof bits);
    bits += power << Bits<Real>::kMantissa;
    std::memcpy(&p, &bits, sizeof p);
    const Lanes<Real> zero{};
    return x < least ? zero : p;
  }

 private:
  Lanes<Real> rounded_;
#endif
};

// 2^f for |f| <= 1/2, by the polynomial with the smallest relative error: 2.1e-16 in double (degree 10), 7.5e-8 in
// float (degree 5).
template <class Real>
DRHMM_INLINE Lanes<Real> exp2_of_fraction(const Lanes<Real>& f) {
  Lanes<Real> p;
  if constexpr (sizeof(Real) == sizeof(double)) {
    p = 7.037279530582804e-09 * f + 1.0208537904552164e-07;
    p = p * f + 1.3215662831846104e-06;
    p = p * f + 1.5252658116561384e-05;
    p = p * f + 0.00015403529961135955;
    p = p * f + 0.0013333558228561476;
    p = p * f + 0.00961812910803459;
    p = p * f + 0.05550410866445883;
    p = p * f + 0.24022650695908768;
    p = p * f + 0.6931471805599497;
    p = p * f + 1.0;
  } else {
    p = 0.0013276472631950876F * f + 0.009675541343121328F;
    p = p * f + 0.055507132718556444F;
    p = p * f + 0.2402211972371072F;
    p = p * f + 0.6931469670650352F;
    p = p * f + 1.0000000716547142F;
  }
  return p;
}

// 2^x for x <= 0, and for x > 0 as for 0; exactly 0 below the range of normal numbers.
template <class Real>
inline Lanes<Real> exp2_of_negative(Lanes<Real> x) {
  const Lanes<Real> zero{};
  x = zero < x ? zero : x;
  const Nearest<Real> nearest(x);
  return nearest.times(exp2_of_fraction<Real>(x - nearest.n()), x, Bits<Real>::kSmallestExponent);
}

// Square blocks of numbers: rows[i][l] and rows[l][i] change places, in log2(kLanes) rounds of exchanges between rows
// that are kHalf apart.
#if defined(__has_builtin) && !defined(DRHMM_SCALAR)
#if __has_builtin(__builtin_shufflevector)
#define DRHMM_HAS_SHUFFLE
#endif
#endif

#if defined(DRHMM_HAS_SHUFFLE)
namespace detail {

template <int kHalf, int... l>
DRHMM_INLINE void exchange(Lanes<double>& one, Lanes<double>& other, std::integer_sequence<int, l...>) {
  constexpr int kWidth = kLanes<double>;
  const Lanes<double> upper = __builtin_shufflevector(one, other, ((l & kHalf) != 0 ? kWidth + l - kHalf : l)...);
  other = __builtin_shufflevector(one, other, ((l & kHalf) != 0 ? kWidth + l : l + kHalf)...);
  one = upper;
}

template <int kHalf>
DRHMM_INLINE void transpose_rounds(Lanes<double>* rows) {
  if constexpr (kHalf > 0) {
    constexpr int kWidth = kLanes<double>;
    for (int i = 0; i < kWidth; ++i) {
      if ((i & kHalf) == 0) exchange<kHalf>(rows[i], rows[i + kHalf], std::make_integer_sequence<int, kWidth>());
    }
    transpose_rounds<kHalf / 2>(rows);
  }
}

}  // namespace detail

DRHMM_INLINE void transpose(Lanes<double>* rows) { detail::transpose_rounds<kLanes<double> / 2>(rows); }
#else
inline void transpose(Lanes<double>* rows) {
  double* const entries = reinterpret_cast<double*>(rows);
  for (int i = 0; i < kLanes<double>; ++i) {
    for (int l = 0; l < i; ++l) std::swap(entries[i * kLanes<double> + l], entries[l * kLanes<double> + i]);
  }
}
#endif

}  // namespace drhmm
