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

// weights (count, C) <- log weights of `count` frames; adds their pivots to `total`. Returns false, with unspecified
// weights, if a frame follows a gap or has unusual evidence.
template <int N>
DRHMM_INLINE bool ordinary_weights(const Evidence& evidence, Index frame, Index count, double* weights, double& total) {
  const Index n = N > 0 ? N : evidence.n_columns;
  double sum_of_pivots = 0, spread = 0, sum = 0;
  for (Index k = 0; k < count; ++k, weights += n) {
    if (evidence.steps(frame + k) != 1) return false;
    const double* const row = evidence.row(frame + k);
    double pivot = row[0], least = row[0];
    for (Index c = 0; c < n; ++c) {
      pivot = row[c] > pivot ? row[c] : pivot;
      least = row[c] < least ? row[c] : least;
      sum += row[c];  // NaN for a NaN, or for infinities of both signs
    }
    spread = pivot - least > spread ? pivot - least : spread;
    for (Index c = 0; c < n; ++c) weights[c] = row[c] - pivot;
    sum_of_pivots += pivot;
  }
  if (!(spread <= kOrdinarySpread) || !(std::abs(sum) < HUGE_VAL)) return false;
  total += sum_of_pivots;
  return true;
}

// The predecessor of each state at each frame: two bits for each of up to four states, or a number.
template <int N>
class Origins {
 public:
  static constexpr bool kPacked = N > 0 && N <= 4;
  using Code = std::conditional_t<kPacked, std::uint8_t, std::uint16_t>;

  Origins(Index n_frames, Index n_states)
      : n_(kPacked ? 1 : n_states), codes_(static_cast<std::size_t>(n_frames * n_)) {}
  DRHMM_INLINE void set(Index t, const Best* scores, Index n_states) {
    if constexpr (kPacked) {
      unsigned code = 0;
      for (int j = 0; j < N; ++j) code |= static_cast<unsigned>(scores[j].from) << (2 * j);
      codes_.data()[t] = static_cast<Code>(code);
    } else {
      for (Index j = 0; j < n_states; ++j) codes_.data()[t * n_ + j] = static_cast<Code>(scores[j].from);
    }
  }
  Index operator()(Index t, Index state) const {
    if constexpr (kPacked) return codes_.data()[t] >> (2 * state) & 3;
    return codes_.data()[t * n_ + state];
  }

 private:
  Index n_;
  KeptMemory<Code> codes_;  // (frames, n_)
};

// Steps to `count` frames with weights (count, C). Scores of few states stay in registers.
template <class Operator>
DRHMM_INLINE void ordinary_steps(const Operator& op, const double* weights, Index first, Index count, Best* scores,
                                 Best* next, Origins<Operator::kStates>& origins) {
  constexpr int kN = Operator::kStates;
  const Index n = kN > 0 ? kN : op.n_states();
  Best fixed[kN > 0 ? 2 * kN : 1];
  Best *const now = kN > 0 ? fixed : scores, *const then = kN > 0 ? fixed + kN : next;
  for (Index i = 0; i < n; ++i) now[i].score = scores[i].score;  // not as pairs: see copy_values
  for (Index k = 0; k < count; ++k, weights += n) {
    for (Index i = 0; i < n; ++i) now[i].from = i;
    op.forward(now, then);
    origins.set(first + k, then, n);
    for (Index i = 0; i < n; ++i) now[i].score = then[i].score + weights[i];
  }
  for (Index i = 0; i < n; ++i) scores[i].score = now[i].score;
}

// One frame with any evidence and any gap before it; scores (states) become those of the frame.
template <class Operator>
Status careful_step(const Operator& op, const Evidence& evidence, Index frame, Index t, GapPaths& gaps, Best* scores,
                    Best* next, Origins<Operator::kStates>& origins, double* plain, double& total) {
  const Index n = op.n_states();
  if (t > 0) {
    for (Index i = 0; i < n; ++i) scores[i].from = i;
    const std::int64_t dt = evidence.steps(frame);
    if (dt == 1) {
      op.forward(scores, next);
    } else {
      gaps.log_power(dt)->forward(scores, next);
    }
    origins.set(t, next, n);
    for (Index i = 0; i < n; ++i) scores[i].score = next[i].score;
  }
  std::copy_n(evidence.row(frame), n, plain);
  make_plain(plain, n);
  for (Index c = 0; c < n; ++c) {
    if (plain[c] != plain[c]) return {Outcome::partial_nan, t, c};
  }
  double pivot = kNever;
  for (Index i = 0; i < n; ++i) {
    if (scores[i].score > kNever) pivot = std::max(pivot, plain[i]);
  }
  if (pivot == kNever) return {Outcome::impossible, t, -1};
  for (Index i = 0; i < n; ++i) {
    if (scores[i].score > kNever) scores[i].score += plain[i] - pivot;
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
  const Index n = op.n_states();
  const Index room = op.template stride<Best>();
  detail::Origins<Operator::kStates> origins(n_frames, n);
  std::vector<Best> memory(static_cast<std::size_t>(2 * room));
  Best *const scores = memory.data(), *const next = scores + room;
  std::vector<double> weights(static_cast<std::size_t>(kSteps * n));
  for (Index i = 0; i < n; ++i) scores[i] = Best(log_start[i]);
  double total = 0;
  for (Index t = 0, count = 1; t < n_frames; t += count, count = std::min(kSteps, n_frames - t)) {
    if (t % kFramesBetweenChecks < kSteps) check_interruption();
    if (t > 0 && detail::ordinary_weights<Operator::kStates>(evidence, begin + t, count, weights.data(), total)) {
      detail::ordinary_steps(op, weights.data(), t, count, scores, next, origins);
    } else {
      for (Index k = t; k < t + count; ++k) {
        const Status status =
            detail::careful_step(op, evidence, begin + k, k, gaps, scores, next, origins, weights.data(), total);
        if (!status.ok()) return status;
      }
    }
    double most = scores[0].score;
    for (Index i = 1; i < n; ++i) most = std::max(most, scores[i].score);
    for (Index i = 0; i < n; ++i) scores[i].score -= most;
    total += most;
  }
  Index state = 0;
  for (Index i = 1; i < n; ++i) {
    if (scores[i].score > scores[state].score) state = i;
  }
  if (log_probability != nullptr) *log_probability = total + scores[state].score;
  for (Index t = n_frames - 1; t >= 0; --t) {
    path[begin + t] = state;
    state = origins(t, state);
  }
  return {};
}

}  // namespace drhmm
