// The layout of evidence, its errors, and its conversion to weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "drhmm/chain/values.hpp"
#include "drhmm/system/exponential.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

enum class Outcome {
  ok,
  impossible,   // the evidence of this frame excludes every reachable state
  partial_nan,  // some values of a row are NaN, but not all
  too_far,      // finite log ratios too far apart for Scaled
  none_known    // the total probability of the known states is too small for double
};

struct Status {
  Outcome outcome = Outcome::ok;
  Index frame = -1;
  Index column = -1;

  bool ok() const { return outcome == Outcome::ok; }
};

struct SequenceStatus {
  Status status;
  Index sequence = -1;
};

// Concatenated sequences, with one row of log ratios per frame.
struct Evidence {
  const double* rows;                // (N, C) log w_c(y_t), up to a constant per row
  Index n_columns;                   // C
  const std::int64_t* dt = nullptr;  // (N) steps since the previous frame, or since the start; null: all 1

  const double* row(Index t) const { return rows + t * n_columns; }
  std::int64_t steps(Index t) const { return dt == nullptr ? 1 : dt[t]; }
};

// Makes one row of log ratios plain. A missing row (all NaN) becomes 0. If a row has +inf, these entries become 0 and
// the others -inf. A row with some NaN keeps a NaN. Value: double, or lanes with one row each.
template <class Value>
DRHMM_INLINE void make_plain(Value* row, Index n) {
  const Value none{}, never = same<Value>(kNever);
  auto is_missing = row[0] != row[0];
  auto is_certain = row[0] == HUGE_VAL;
  for (Index c = 1; c < n; ++c) {
    is_missing = is_missing & (row[c] != row[c]);
    is_certain = is_certain | (row[c] == HUGE_VAL);
  }
  for (Index c = 0; c < n; ++c) {
    const Value excluded = row[c] == row[c] ? never : row[c];
    const Value certain = row[c] == HUGE_VAL ? none : excluded;
    const Value plain = is_certain ? certain : row[c];
    row[c] = is_missing ? none : plain;
  }
}

// l_c <- l_c - max l for one plain row; pivot <- the maximum. Adds the distance to the smallest finite entry to
// `spread`, and NaN to `check` if the row is not plain.
template <bool with_spread, class Value>
DRHMM_INLINE void make_relative(Value* row, Index n, Value& pivot, Value& spread, Value& check) {
  Value most = row[0];
  for (Index c = 1; c < n; ++c) most = row[c] > most ? row[c] : most;
  for (Index c = 0; c < n; ++c) {
    row[c] -= most;
    check += row[c];
  }
  pivot = most;
  if constexpr (with_spread) {
    const Value never = same<Value>(kNever), none{};
    Value least{};
    for (Index c = 0; c < n; ++c) {
      const Value finite = row[c] > never ? row[c] : none;
      least = finite < least ? finite : least;
    }
    spread -= least;
  }
}

// values (n) <- e^values for values <= 0, n a multiple of 4; unspecified for NaN.
template <class Value>
DRHMM_INLINE void make_weights(Value* values, Index n) {
  if constexpr (kWidth<Value> == 1) {
    exponentials(values, n);
  } else {
    for (Index i = 0; i < n; i += 4) exponentials_of<4, false>(values + i);
  }
}

// rows (4, n): two or three log ratios per row -> weights. pivots (4). The result is NaN if a row may not be plain. The
// likeliest column has weight 1 and needs no exponential.
template <int n, class Value>
DRHMM_INLINE Value weights_of_few(Value* rows, Value* pivots) {
  const Value one = same<Value>(1.0), none{};
  Value x[4 * (n - 1)], by_first[4], by_two[4], sum{};
  for (int k = 0; k < 4; ++k) {
    const Value &a = rows[k * n], &b = rows[k * n + 1];
    by_first[k] = a - b;
    const Value larger = by_first[k] > none ? a : b;
    pivots[k] = larger;
    x[k] = by_first[k] > none ? none - by_first[k] : by_first[k];
    if constexpr (n == 3) {
      const Value& c = rows[k * n + 2];
      by_two[k] = larger - c;
      pivots[k] = by_two[k] < none ? c : larger;
      x[k] += by_two[k] < none ? by_two[k] : none;                 // the smaller one of a and b
      x[4 + k] = by_two[k] > none ? none - by_two[k] : by_two[k];  // the larger one, or c
      sum += x[4 + k];
    }
    sum += x[k] + none * pivots[k];  // NaN for an infinite pivot, too
  }
  make_weights(x, 4 * (n - 1));
  for (int k = 0; k < 4; ++k) {
    Value* const w = rows + k * n;
    const auto is_first = by_first[k] > none;
    Value high = one;
    if constexpr (n == 3) {
      const auto is_third = by_two[k] < none;
      high = is_third ? x[4 + k] : one;
      w[2] = is_third ? one : x[4 + k];
    }
    w[0] = is_first ? high : x[k];
    w[1] = is_first ? x[k] : high;
  }
  return sum;
}

namespace detail {

// e^(log_ratio - pivot) for log_ratio <= pivot.
inline double weight_of(double log_ratio, double pivot, double*) { return std::exp(log_ratio - pivot); }

// Adds the rounding error of the difference, so that large log ratios keep their digits.
inline Scaled weight_of(double log_ratio, double pivot, Scaled*) {
  const double difference = log_ratio - pivot;
  if (difference < -Scaled::kLargest) return Scaled::exp(-Scaled::kLargest);  // in mixing chains only
  const double shifted = difference - log_ratio;
  const double tail = (log_ratio - (difference - shifted)) - (pivot + shifted);
  return Scaled::exp(difference, std::isfinite(tail) ? tail : 0.0);
}

}  // namespace detail

// weights (C) <- those of log_ratios (C), relative to the likeliest reachable column (reach > 0), and 0 for unreachable
// columns; pivot <- the log ratio of that column. Sets is_lost if a weight is below `least`, which is too small for
// messages of double. Mixing chains allow any distance between log ratios. row (C): scratch memory.
template <class Value>
Outcome weights_of_reachable(const double* log_ratios, Index n, const Value* reach, bool is_mixing, double least,
                             Value* weights, double* row, double& pivot, Index& column, bool& is_lost) {
  std::copy_n(log_ratios, n, row);
  make_plain(row, n);
  pivot = kNever;
  for (Index c = 0; c < n; ++c) {
    if (row[c] != row[c]) {
      column = c;
      return Outcome::partial_nan;
    }
    if (reach[c] > Value(0) && row[c] > pivot) pivot = row[c];
  }
  if (pivot == kNever) return Outcome::impossible;
  for (Index c = 0; c < n; ++c) {
    weights[c] = Value(0);
    if (!(reach[c] > Value(0)) || row[c] == kNever) continue;
    if (is_scaled<Value> && !is_mixing && pivot - row[c] > Scaled::kLargest) {
      column = c;
      return Outcome::too_far;
    }
    weights[c] = row[c] == pivot ? Value(1) : detail::weight_of(row[c], pivot, static_cast<Value*>(nullptr));
    if (!is_scaled<Value> && !is_mixing && weights[c] < Value(least)) is_lost = true;
  }
  return Outcome::ok;
}

}  // namespace drhmm
