// A positive number with an exponent that cannot overflow: mantissa in [1, 2) times 2^exponent, or zero.
//
// In left-right models, a few frames of strong evidence take messages beyond double's range. Recursions are templates
// over the number type, and use this one if double is too narrow.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

namespace drhmm {

class Scaled {
 public:
  Scaled() = default;
  // Eigen constructs 0 and 1 from int.
  Scaled(int value) : Scaled(static_cast<double>(value)) {}
  Scaled(double value) {
    if (value > 0) {
      int exponent = 0;
      mantissa_ = 2 * std::frexp(value, &exponent);
      exponent_ = exponent - 1;
    }
  }

  static constexpr double kLargest = 0x1p36;  // the largest |x| for exp
  // Exponents saturate here, on either side: sums and differences of two of them fit in 64 bits, and a possible state
  // never becomes 0, whatever the evidence against it.
  static constexpr std::int64_t kLargestExponent = std::int64_t{1} << 61;

  // e^(x + tail), where tail has the digits that do not fit in x.
  static Scaled exp(double x, double tail = 0) {
    // x = k log 2 + r, |r| <= log(2) / 2; log 2 in two parts keeps r exact to its last digits.
    const double k = std::nearbyint(x * 1.4426950408889634);
    const double r = std::fma(-k, 2.3190468138462996e-17, std::fma(-k, 0.6931471805599453, x));
    Scaled result(std::exp(r + tail));
    result.exponent_ += static_cast<std::int64_t>(k);
    return result;
  }

  explicit operator double() const {
    if (exponent_ > 1100) return HUGE_VAL;
    return exponent_ < -1100 ? 0.0 : std::ldexp(mantissa_, static_cast<int>(exponent_));
  }

  double log() const { return std::log(mantissa_) + 0.6931471805599453 * static_cast<double>(exponent_); }
  double mantissa() const { return mantissa_; }
  std::int64_t exponent() const { return exponent_; }
  // mantissa * 2^exponent, for a mantissa in [1, 2) or 0 and 0.
  static Scaled from_parts(double mantissa, std::int64_t exponent) { return {mantissa, exponent}; }
  Scaled times_power_of_two(std::int64_t exponent) const {
    return Scaled(mantissa_, exponent_ + exponent).renormalized();
  }

  friend Scaled operator*(Scaled a, Scaled b) {
    return Scaled(a.mantissa_ * b.mantissa_, a.exponent_ + b.exponent_).renormalized();
  }
  friend Scaled operator/(Scaled a, Scaled b) {
    Scaled result(a.mantissa_ / b.mantissa_, a.exponent_ - b.exponent_);
    if (result.mantissa_ < 1 && result.mantissa_ > 0) result = Scaled(2 * result.mantissa_, result.exponent_ - 1);
    return result.renormalized();
  }
  friend Scaled operator+(Scaled a, Scaled b) {
    if (a < b) std::swap(a, b);
    const std::int64_t shift = a.exponent_ - b.exponent_;
    if (b.mantissa_ == 0 || shift > 60) return a;
    return Scaled(a.mantissa_ + b.mantissa_ * power_of_two(-shift), a.exponent_).renormalized();
  }
  Scaled& operator+=(Scaled other) { return *this = *this + other; }
  Scaled& operator*=(Scaled other) { return *this = *this * other; }

  friend bool operator<(Scaled a, Scaled b) {
    if (a.mantissa_ == 0 || b.mantissa_ == 0) return a.mantissa_ < b.mantissa_;
    return a.exponent_ != b.exponent_ ? a.exponent_ < b.exponent_ : a.mantissa_ < b.mantissa_;
  }
  friend bool operator>(Scaled a, Scaled b) { return b < a; }
  friend bool operator==(Scaled a, Scaled b) { return a.mantissa_ == b.mantissa_ && a.exponent_ == b.exponent_; }

 private:
  Scaled(double mantissa, std::int64_t exponent) : mantissa_(mantissa), exponent_(exponent) {}

  Scaled renormalized() const {
    if (mantissa_ == 0) return {};
    const Scaled result = mantissa_ >= 2 ? Scaled(mantissa_ / 2, exponent_ + 1) : *this;
    return {result.mantissa_, std::clamp(result.exponent_, -kLargestExponent, kLargestExponent)};
  }

  static double power_of_two(std::int64_t exponent) {
    const std::uint64_t bits = static_cast<std::uint64_t>(exponent + 1023) << 52;
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  double mantissa_ = 0;
  std::int64_t exponent_ = 0;
};

}  // namespace drhmm

template <>
struct Eigen::NumTraits<drhmm::Scaled> : Eigen::GenericNumTraits<drhmm::Scaled> {
  using Real = drhmm::Scaled;
  using NonInteger = drhmm::Scaled;
  using Nested = drhmm::Scaled;
  using Literal = double;
  enum {
    IsComplex = 0,
    IsInteger = 0,
    IsSigned = 0,
    RequireInitialization = 1,
    ReadCost = 2,
    AddCost = 8,
    MulCost = 4
  };
};
