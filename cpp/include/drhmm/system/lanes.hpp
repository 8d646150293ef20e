// Several numbers at a time, in the vector registers of the instruction set that this file is compiled for.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__SSE2__)
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

// Promises that no other pointer reaches the same memory.
#if defined(__GNUC__) || defined(_MSC_VER)
#define DRHMM_RESTRICT __restrict
#else
#define DRHMM_RESTRICT
#endif

// Compilers with vector types: GCC and clang, also clang-cl, which does not define __GNUC__. DRHMM_SCALAR compiles the
// code for compilers without them, to test it.
#if (defined(__GNUC__) || defined(__clang__)) && !defined(DRHMM_SCALAR)
#define DRHMM_HAS_VECTORS
#endif

#if defined(DRHMM_HAS_VECTORS) && defined(__AVX512F__)
#define DRHMM_HAS_SCALING  // instructions that multiply numbers by powers of two, and look them up in registers
#endif

#if defined(DRHMM_HAS_VECTORS)
#define DRHMM_INLINE inline __attribute__((always_inline))
template <class Real>
struct Register;
template <>
struct Register<double> {
  using Value = double __attribute__((vector_size(kRegisterBytes)));
  using Unsigned = std::uint64_t __attribute__((vector_size(kRegisterBytes)));
  using Bytes = std::uint8_t __attribute__((vector_size(kRegisterBytes / 8)));  // one for each number
};
template <>
struct Register<float> {
  using Value = float __attribute__((vector_size(kRegisterBytes)));
  using Unsigned = std::uint32_t __attribute__((vector_size(kRegisterBytes)));
};
template <>
struct Register<std::int32_t> {
  using Value = std::int32_t __attribute__((vector_size(kRegisterBytes)));
  using Bytes = std::uint8_t __attribute__((vector_size(kRegisterBytes / 4)));
};
template <class Real>
constexpr int kLanes = kRegisterBytes / static_cast<int>(sizeof(Real));
#else
#define DRHMM_INLINE inline
// One number at a time, for compilers without vector types.
template <class Real>
struct Register {
  using Value = Real;
  using Unsigned = std::conditional_t<sizeof(Real) == 8, std::uint64_t, std::uint32_t>;
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

// Stores without filling the caches, if the processor can. The address must be a multiple of a register's size. Other
// threads see the numbers after the fence.
#if defined(__SSE2__) && defined(DRHMM_HAS_VECTORS)
DRHMM_INLINE void stream(const Lanes<double>& value, double* to) {
#if defined(__AVX512F__)
  _mm512_stream_pd(to, value);
#elif defined(__AVX__)
  _mm256_stream_pd(to, value);
#else
  _mm_stream_pd(to, value);
#endif
}
inline void fence_streams() { _mm_sfence(); }
#else
inline void stream(const Lanes<double>& value, double* to) { store<double>(value, to); }
inline void fence_streams() {}
#endif

// Whether to bypass the caches when storing n_numbers from `begin` on: they may not fit in a second-level cache, and
// `begin` is aligned to a cache line. It saves fetching lines only to overwrite them, which is slow.
inline bool is_past_caches(const double* begin, Index n_numbers) {
  constexpr Index kHeld = 1 << 20, kLineOfCache = 64;  // bytes
  return n_numbers * Index{sizeof(double)} > kHeld && reinterpret_cast<std::uintptr_t>(begin) % kLineOfCache == 0;
}

template <class Real>
inline Lanes<Real> all(Real value) {
  return Lanes<Real>{} + value;
}

// Stores small integers as bytes, or loads bytes as numbers.
#if defined(DRHMM_HAS_VECTORS)
DRHMM_INLINE void store_bytes(const Lanes<std::int32_t>& value, std::uint8_t* to) {
  const auto bytes = __builtin_convertvector(value, Register<std::int32_t>::Bytes);
  std::memcpy(to, &bytes, sizeof bytes);
}
DRHMM_INLINE Lanes<double> load_bytes(const std::uint8_t* from) {
#if defined(__AVX512F__)
  return _mm512_cvtepi32_pd(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#elif defined(__AVX2__)
  std::int32_t four;
  std::memcpy(&four, from, sizeof four);
  return _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four)));
#else
  Register<double>::Bytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, Lanes<double>);
#endif
}
#else
inline void store_bytes(std::int32_t value, std::uint8_t* to) { *to = static_cast<std::uint8_t>(value); }
inline double load_bytes(const std::uint8_t* from) { return *from; }
#endif

// one > other ? one : other, in one instruction where compilers would compare and select.
DRHMM_INLINE Lanes<double> larger(const Lanes<double>& one, const Lanes<double>& other) {
#if defined(DRHMM_HAS_VECTORS) && defined(__AVX512F__)
  return _mm512_max_pd(one, other);
#elif defined(DRHMM_HAS_VECTORS) && defined(__AVX__)
  return _mm256_max_pd(one, other);
#elif defined(DRHMM_HAS_VECTORS) && defined(__SSE2__)
  return _mm_max_pd(one, other);
#else
  return one > other ? one : other;
#endif
}

// x in the first n lanes, and 0 in the others.
DRHMM_INLINE Lanes<double> first_lanes(const Lanes<double>& x, Index n) {
  alignas(kRegisterBytes) static constexpr double kLaneNumbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
  const Lanes<double> none{};
  return load(kLaneNumbers) < static_cast<double>(n) ? x : none;
}

// to (lanes) <- integers that fit in Code.
template <class Code>
DRHMM_INLINE void store_low_bits(const typename Register<double>::Unsigned& integers, Code* to) {
#if defined(DRHMM_HAS_VECTORS)
  typedef Code Codes __attribute__((vector_size(kLanes<double> * sizeof(Code))));
  const Codes codes = __builtin_convertvector(integers, Codes);
  std::memcpy(to, &codes, sizeof codes);
#else
  *to = static_cast<Code>(integers);
#endif
}

// -|x|
DRHMM_INLINE Lanes<double> negative(Lanes<double> x) {
  typename Register<double>::Unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits |= std::uint64_t{1} << 63;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Tells the processor to fetch memory that will be read or written soon. Any address is allowed.
#if defined(DRHMM_HAS_VECTORS)
DRHMM_INLINE void prefetch_read(const double* place) { __builtin_prefetch(place, 0); }
DRHMM_INLINE void prefetch_write(const double* place) { __builtin_prefetch(place, 1); }
#else
inline void prefetch_read(const double*) {}
inline void prefetch_write(const double*) {}
#endif

inline double lane_of(const Lanes<double>& value, Index lane) {
  double number;
  std::memcpy(&number, reinterpret_cast<const char*>(&value) + lane * Index{sizeof number}, sizeof number);
  return number;
}

inline void set_lane(Lanes<double>& value, Index lane, double number) {
  std::memcpy(reinterpret_cast<char*>(&value) + lane * Index{sizeof number}, &number, sizeof number);
}

// Transposes a square block: rows[i][l] and rows[l][i] change places, in log2(kLanes) rounds of exchanges between rows
// that are kHalf apart.
#if defined(__has_builtin) && defined(DRHMM_HAS_VECTORS)
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
