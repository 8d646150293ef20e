// The most probable path: products of the chain on logarithms, with max in place of sum. Nothing underflows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "drhmm/chain/powers.hpp"
#include "drhmm/recursion/evidence.hpp"
#include "drhmm/system/interruption.hpp"
#include "drhmm/system/memory.hpp"

namespace drhmm {

// log of A^dt for the gaps of one call, each computed once: A^dt is a product of one factor A^(d 16^k) for each digit d
// of dt to the base 16, and factors are kept.
class GapPaths {
 public:
  GapPaths(const Powers<double>& powers, const Powers<Scaled>& scaled_powers)
      : powers_(powers), scaled_powers_(scaled_powers) {}

  std::shared_ptr<const Dense<0>> log_power(std::int64_t dt) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& kept = logs_[dt];
    if (kept != nullptr) return kept;
    const bool fits = powers_.reach(dt).complete;
    const RowMatrix logs =
        fits ? RowMatrix(power(powers_, factors_, dt).array().log())
             : RowMatrix(power(scaled_powers_, scaled_factors_, dt).unaryExpr([](const Scaled& x) { return x.log(); }));
    auto made = std::make_shared<const Dense<0>>(logs);
    if (static_cast<std::size_t>(logs.size()) * logs_.size() < kMostKept) {
      kept = made;
    } else {
      logs_.erase(dt);
    }
    return made;
  }

 private:
  static constexpr std::size_t kMostKept = std::size_t{1} << 23;  // numbers
  template <class Number>
  using Factors = std::unordered_map<std::int64_t, NumberMatrix<Number>>;

  // The last digit of dt that is not 0, times its place value.
  static std::int64_t last_digit(std::int64_t dt) {
    std::int64_t place = 1;
    while ((dt / place & 15) == 0) place *= 16;
    return (dt / place & 15) * place;
  }

  template <class Number>
  static NumberMatrix<Number> power(const Powers<Number>& powers, Factors<Number>& factors, std::int64_t dt) {
    check_interruption();
    const std::int64_t digit = last_digit(dt);
    if (digit != dt) return product(power(powers, factors, dt - digit), factor(powers, factors, digit));
    return factor(powers, factors, digit);
  }
  template <class Number>
  static const NumberMatrix<Number>& factor(const Powers<Number>& powers, Factors<Number>& factors,
                                            std::int64_t digit) {
    const auto found = factors.find(digit);
    if (found != factors.end()) return found->second;
    std::size_t k = 0;
    while ((digit >> k & 1) == 0) ++k;
    const NumberMatrix<Number>& square = powers.reach(digit).of[k]->matrix;
    const std::int64_t rest = digit - (std::int64_t{1} << k);
    NumberMatrix<Number> made = rest == 0 ? square : product(factor(powers, factors, rest), square);
    return factors.emplace(digit, std::move(made)).first->second;
  }
  const Powers<double>& powers_;
  const Powers<Scaled>& scaled_powers_;
  std::mutex mutex_;
  std::unordered_map<std::int64_t, std::shared_ptr<const Dense<0>>> logs_;
  Factors<double> factors_;
  Factors<Scaled> scaled_factors_;
};

namespace detail {

// Rows with a larger spread take careful_step: unreachable states must not cost scores their digits.
constexpr double kOrdinarySpread = 1e4;

constexpr Index padded(Index n) { return (n + kLanes<double> - 1) / kLanes<double> * kLanes<double>; }

// weights (count, N or padded(C)) <- log ratios relative to those of the first column, which are added to `total`.
// Returns false, with unspecified weights, if a frame follows a gap or has unusual evidence. raw (count, C): scratch
// memory with room for one more register.
template <int N>
DRHMM_INLINE bool ordinary_weights(const Evidence& evidence, Index frame, Index count, double* raw, double* weights,
                                   double& total) {
  const Index n = N > 0 ? N : evidence.n_columns;
  for (Index k = 0; k < count; ++k) {
    if (evidence.steps(frame + k) != 1) return false;
  }
  const double* row = evidence.row(frame);
  double sum_of_pivots = 0, least = 0, sum = 0;
  if constexpr (N > 0) {
    for (Index k = 0; k < count; ++k, row += N) {
      for (int c = 0; c < N; ++c) {
        const double x = weights[k * N + c] = row[c] - row[0];
        least = -std::abs(x) < least ? -std::abs(x) : least;
        sum += x;  // NaN for a NaN, or for infinities of both signs
      }
      sum_of_pivots += row[0];
    }
  } else {
    Lanes<double> lows{}, sums{};
    row = std::copy_n(row, count * n, raw) - count * n;
    for (Index k = 0; k < count; ++k, row += n) {
      for (Index c = 0; c < n; c += kLanes<double>) {
        Lanes<double> x = load(row + c) - row[0];
        if (n - c < kLanes<double>) x = first_lanes(x, n - c);
        const Lanes<double> low = negative(x);
        lows = low < lows ? low : lows;
        sums += x;
        store<double>(x, weights + k * padded(n) + c);
      }
      sum_of_pivots += row[0];
    }
    for (int l = 0; l < kLanes<double>; ++l) least = std::min(least, lane_of(lows, l)), sum += lane_of(sums, l);
  }
  if (!(least >= -kOrdinarySpread) || !(std::abs(sum) < HUGE_VAL)) return false;
  total += sum_of_pivots;
  return true;
}

// The predecessors of the states at each frame: a number each, or two bits each for N states, so that following a path
// does not wait for the memory.
using Code = std::uint16_t;
template <int N>
DRHMM_INLINE Code packed(const Code* from) {
  unsigned code = 0;
  for (int j = 0; j < N; ++j) code |= static_cast<unsigned>(from[j]) << (2 * j);
  return static_cast<Code>(code);
}

// Steps to `count` frames with weights (count, N or padded(S)). Scores of few states stay in registers.
template <class Operator>
DRHMM_INLINE void ordinary_steps(const Operator& op, const double* weights, Index count, double*& scores, double*& next,
                                 Code* from) {
  constexpr int kN = Operator::kStates;
  if constexpr (kN > 0) {
    double now[kN], then[kN];
    Code own[kN];
    copy_values(scores, kN, now);
    for (Index k = 0; k < count; ++k) {
      op.best(now, weights + k * kN, then, own);
      from[k] = packed<kN>(own);
      copy_values(then, kN, now);
    }
    copy_values(now, kN, scores);
  } else {
    const Index n = op.n_states(), room = padded(n);
    for (Index k = 0; k < count; ++k, weights += room) {
      op.best(scores, weights, next, from + k * n);
      std::swap(scores, next);
    }
  }
}

// One frame with any evidence and any gap before it; scores (states) become those of the frame.
template <class Operator>
Status careful_step(const Operator& op, const Evidence& evidence, Index frame, Index t, GapPaths& gaps,
                    const double* zeros, double* scores, double* next, Code* from, double* plain, double& total) {
  const Index n = op.n_states();
  if (t > 0) {
    constexpr int kN = Operator::kStates;
    Code few[kN + 2 * kLanes<double>];
    Code* const own = kN > 0 ? few : from;
    const std::int64_t dt = evidence.steps(frame);
    if (dt == 1) {
      op.best(scores, zeros, next, own);
    } else {
      gaps.log_power(dt)->best(scores, zeros, next, own);
    }
    if (kN > 0) from[0] = packed<kN>(own);
    std::copy_n(next, n, scores);
  }
  std::copy_n(evidence.row(frame), n, plain);
  make_plain(plain, n);
  for (Index c = 0; c < n; ++c) {
    if (plain[c] != plain[c]) return {Outcome::partial_nan, t, c};
  }
  double pivot = kNever;
  for (Index i = 0; i < n; ++i) {
    if (scores[i] > kNever) pivot = std::max(pivot, plain[i]);
  }
  if (pivot == kNever) return {Outcome::impossible, t, -1};
  for (Index i = 0; i < n; ++i) {
    if (scores[i] > kNever) scores[i] += plain[i] - pivot;
  }
  total += pivot;
  return {};
}

}  // namespace detail

// path (T): argmax over x_1..x_T of p(x_1..x_T | y_1..y_T) for the columns at the frames, summed over all states in
// gaps; the first of equally probable predecessors wins. op: with logarithms; log_start (states): before the first
// frame. At most 65536 states. log_probability (or null) <- that of the path and its evidence.
template <class Operator>
Status best_path(const Operator& op, const Vector& log_start, const Evidence& evidence, Index begin, Index n_frames,
                 GapPaths& gaps, std::int64_t* path, double* log_probability) {
  constexpr Index kSteps = 16;  // frames between rescalings of scores
  constexpr bool is_packed = Operator::kStates > 0;
  const Index n = op.n_states(), room = detail::padded(n), n_codes = is_packed ? 1 : n;
  KeptMemory<detail::Code> origins(static_cast<std::size_t>(n_frames * n_codes + room));  // (T, n_codes)
  std::vector<Lanes<double>> memory(static_cast<std::size_t>((3 + 2 * kSteps) * room / kLanes<double> + 1));
  double* const zeros = reinterpret_cast<double*>(memory.data());
  double *scores = zeros + room, *next = scores + room;
  double *const weights = next + room, *const raw = weights + kSteps * room;
  std::copy_n(log_start.data(), n, scores);
  double total = 0;
  for (Index t = 0, count = 1; t < n_frames; t += count, count = std::min(kSteps, n_frames - t)) {
    if (t % kFramesBetweenChecks < kSteps) check_interruption();
    detail::Code* const from = origins.data() + t * n_codes;
    if (t > 0 && detail::ordinary_weights<Operator::kStates>(evidence, begin + t, count, raw, weights, total)) {
      detail::ordinary_steps(op, weights, count, scores, next, from);
    } else {
      for (Index k = 0; k < count; ++k) {
        const Status status = detail::careful_step(op, evidence, begin + t + k, t + k, gaps, zeros, scores, next,
                                                   from + k * n_codes, weights, total);
        if (!status.ok()) return status;
      }
    }
    const double most = *std::max_element(scores, scores + n);
    for (Index i = 0; i < n; ++i) scores[i] -= most;
    total += most;
  }
  Index state = std::max_element(scores, scores + n) - scores;
  if (log_probability != nullptr) *log_probability = total + scores[state];
  for (Index t = n_frames - 1; t >= 0; --t) {
    path[begin + t] = state;
    if (t == 0) break;  // it has no predecessor
    state = is_packed ? origins.data()[t] >> (2 * state) & 3 : origins.data()[t * n + state];
  }
  return {};
}

}  // namespace drhmm
