// The two steps that every recursion is made of, and the only place that scales:
//   predict    message <- (A^dt)^T message (forward), A^dt message (backward)
//   condition  message_i <- message_i * w_i(y_t), then divided by a power of two so that the pivot is in [1, 2)
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "drhmm/recursion/chain.hpp"
#include "drhmm/recursion/evidence.hpp"

namespace drhmm {

enum class Outcome {
  ok,
  impossible,    // the evidence of this frame contradicts every state that the chain can be in
  partial_nan,   // a row with some NaN: neither evidence nor missing
  out_of_range,  // double cannot hold the messages from this frame on: repeat with Scaled
  too_far,       // finite log ratios so far apart that Scaled cannot hold them either
  none_known     // beside the unknown, the known states have no probability that double can tell from 0
};

struct Status {
  Outcome outcome = Outcome::ok;
  Index frame = -1;
  Index column = -1;

  bool ok() const { return outcome == Outcome::ok; }
};

namespace detail {

// message * w, with w = e^(log_ratio - pivot). What is possible never becomes an exact zero: where double underflows,
// its smallest positive number stands for "too small", and rescale decides whether that matters. Entries above the
// pivot belong to states that cannot be reached; their weight is of no account.
inline double weighted(double message, double log_ratio, double pivot) {
  if (log_ratio >= pivot) return message;
  if (log_ratio == -HUGE_VAL || pivot == HUGE_VAL || message == 0) return 0;
  return std::max(message * std::exp(log_ratio - pivot), std::numeric_limits<double>::denorm_min());
}

inline Scaled weighted(Scaled message, double log_ratio, double pivot) {
  if (log_ratio >= pivot) return message;
  if (log_ratio == -HUGE_VAL || pivot == HUGE_VAL || message == Scaled(0)) return 0;
  // The difference and what its rounding lost, so that large log ratios keep their digits.
  const double difference = log_ratio - pivot;
  if (difference < -Scaled::kLargest) return message * Scaled::exp(-Scaled::kLargest);  // in mixing chains only
  const double shifted = difference - log_ratio;
  const double tail = (log_ratio - (difference - shifted)) - (pivot + shifted);
  return message * Scaled::exp(difference, std::isfinite(tail) ? tail : 0.0);
}

// Whether double can carry every entry on without loss.
inline bool within_range(const NumberVector<double>& message) {
  constexpr double kSmallestRatio = 0x1p-960;
  return !(message.array() > 0 && message.array() < kSmallestRatio).any();
}

inline bool within_range(const NumberVector<Scaled>&) { return true; }

// Divides by a power of two, exactly, so that the largest entry lies in [1, 2).
inline Outcome rescale(NumberVector<double>& message) {
  constexpr double kSmallestPivot = 0x1p-60;
  const double largest = message.maxCoeff();
  if (!(largest >= kSmallestPivot) || !within_range(message)) return Outcome::out_of_range;
  message *= std::ldexp(1.0, -std::ilogb(largest));
  return Outcome::ok;
}

inline Outcome rescale(NumberVector<Scaled>& message) {
  const std::int64_t exponent = message.maxCoeff().exponent();
  for (Scaled& value : message) value = value.times_power_of_two(-exponent);
  return Outcome::ok;
}

}  // namespace detail

// message <- p(x_t+dt) from p(x_t), up to a constant; predicted is scratch memory.
template <class Number>
Outcome predict_forward(const Chain<Number>& chain, std::int64_t dt, NumberVector<Number>& message,
                        NumberVector<Number>& predicted) {
  if (dt == 1) {
    predicted.noalias() = chain.transposed * message;
    message.swap(predicted);
    return Outcome::ok;
  }
  const bool fits = chain.powers.for_each_factor(dt, [&](const NumberMatrix<Number>& power) {
    predicted.noalias() = power.transpose() * message;
    message.swap(predicted);
    return detail::within_range(message);
  });
  return fits ? Outcome::ok : Outcome::out_of_range;
}

// message <- p(y_t+dt.. | x_t) from p(y_t+dt.. | x_t+dt), up to a constant.
template <class Number>
Outcome predict_backward(const Chain<Number>& chain, std::int64_t dt, NumberVector<Number>& message,
                         NumberVector<Number>& predicted) {
  if (dt == 1) {
    predicted.noalias() = chain.transmat * message;
    message.swap(predicted);
    return Outcome::ok;
  }
  const bool fits = chain.powers.for_each_factor(dt, [&](const NumberMatrix<Number>& power) {
    predicted.noalias() = power * message;
    message.swap(predicted);
    return detail::within_range(message);
  });
  return fits ? Outcome::ok : Outcome::out_of_range;
}

// message <- message .* w(y_t), where row holds log w(y_t); a row of NaN is a missing frame.
template <class Number>
Outcome condition(const double* row, [[maybe_unused]] Range range, NumberVector<Number>& message, Index& column) {
  const Index n = message.size();
  Index n_nan = 0;
  bool certain = false;  // some state, reachable or not, excludes all others
  double pivot = -HUGE_VAL;
  for (Index i = 0; i < n; ++i) {
    if (std::isnan(row[i])) {
      if (n_nan++ == 0) column = i;
      continue;
    }
    certain |= row[i] == HUGE_VAL;
    if (row[i] > pivot && message[i] > Number(0)) pivot = row[i];
  }
  if (n_nan == 0) {
    if (pivot == -HUGE_VAL || (certain && pivot != HUGE_VAL)) return Outcome::impossible;
    for (Index i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<Number, Scaled>) {
        // A mixing chain makes up for any difference within one step.
        if (range != Range::mixing && row[i] > -HUGE_VAL && pivot - row[i] > Scaled::kLargest && pivot < HUGE_VAL &&
            message[i] > Number(0)) {
          column = i;
          return Outcome::too_far;
        }
      }
      message[i] = detail::weighted(message[i], row[i], pivot);
    }
  } else if (n_nan < n) {
    return Outcome::partial_nan;
  }
  return detail::rescale(message);
}

// A backward message without the states that the forward pass cannot be in: they do not count, and left in, their
// evidence could outweigh that of all others.
template <class Number, class Forward>
void drop_unreachable(const Forward& forward, NumberVector<Number>& backward) {
  for (Index i = 0; i < backward.size(); ++i) {
    if (!(forward[i] > Number(0))) backward[i] = Number(0);
  }
}

// Probabilities from ratios; false where double lost what the largest of them is made of.
inline bool normalize(const NumberVector<double>& ratios, double* probabilities) {
  constexpr double kSmallestPivot = 0x1p-20;
  if (!(ratios.maxCoeff() >= kSmallestPivot)) return false;
  Eigen::Map<Vector>(probabilities, ratios.size()) = ratios / ratios.sum();
  return true;
}

inline bool normalize(const NumberVector<Scaled>& ratios, double* probabilities) {
  const std::int64_t exponent = ratios.maxCoeff().exponent();
  Vector relative(ratios.size());
  for (Index i = 0; i < ratios.size(); ++i) relative[i] = double(ratios[i].times_power_of_two(-exponent));
  return normalize(relative, probabilities);
}

}  // namespace drhmm
