// The most probable path, in max-product ratios: sums of logarithms, to which nothing is too small.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "drhmm/interruption.hpp"
#include "drhmm/recursion/kept_memory.hpp"
#include "drhmm/recursion/step.hpp"

namespace drhmm {

// The logarithms of a chain, and its powers for gaps.
struct LogChain {
  RowMatrix transmat;  // log A_ij
  Vector startprob;    // log pi_i
  Chain<Scaled> chain;

  LogChain(const ConstRows& a, const Eigen::Map<const Vector>& pi)
      : transmat(a.array().log()), startprob(pi.array().log()), chain(a, pi) {}

  Index n_states() const { return startprob.size(); }

  // log of A^dt
  RowMatrix power(std::int64_t dt) const {
    NumberMatrix<Scaled> product = NumberMatrix<Scaled>::Identity(n_states(), n_states());
    chain.powers.for_each_factor(dt, [&](const NumberMatrix<Scaled>& factor) {
      product = (product * factor).eval();
      return true;
    });
    return product.unaryExpr([](const Scaled& value) { return value.log(); });
  }
};

namespace detail {

constexpr double kNever = -std::numeric_limits<double>::infinity();
// Evidence of a row further apart than this goes the careful way, relative to the states that can be reached: the
// others must not push scores to where digits are lost.
constexpr double kOrdinarySpread = 1e4;
constexpr Index kRescale = 16;  // frames after which scores are taken from the best of them again

// scores <- scores + log w(y_t), where row holds log w(y_t), for any row that there may be.
template <class Scores>
Outcome add_evidence(const double* row, Scores& scores, Index& column) {
  const Index n = scores.size();
  Index n_nan = 0;
  bool certain = false;
  double pivot = kNever;
  for (Index i = 0; i < n; ++i) {
    if (std::isnan(row[i])) {
      if (n_nan++ == 0) column = i;
      continue;
    }
    certain = certain || row[i] == HUGE_VAL;
    if (scores[i] > kNever && row[i] > pivot) pivot = row[i];
  }
  if (n_nan > 0) return n_nan < n ? Outcome::partial_nan : Outcome::ok;
  if (pivot == kNever || (certain && pivot != HUGE_VAL)) return Outcome::impossible;
  for (Index i = 0; i < n; ++i) {
    // Where a state is certain, the others are excluded.
    const double weight = certain ? (row[i] == HUGE_VAL ? 0 : kNever) : row[i] - pivot;
    scores[i] = scores[i] > kNever ? scores[i] + weight : kNever;
  }
  return Outcome::ok;
}

// The same for a row without NaN whose entries are close together; false, and nothing done, for any other.
template <class Scores>
bool add_ordinary_evidence(const double* row, Scores& scores) {
  const Index n = scores.size();
  double pivot = row[0], least = row[0], sum = row[0];
  for (Index i = 1; i < n; ++i) {
    pivot = row[i] > pivot ? row[i] : pivot;
    least = row[i] < least ? row[i] : least;
    sum += row[i];
  }
  if (!(pivot - least <= kOrdinarySpread) || sum != sum) return false;
  for (Index i = 0; i < n; ++i) scores[i] += row[i] - pivot;
  return true;
}

// next_j <- max_i scores_i + log A_ij and the i that it comes from, of equal ones the first.
template <class Scores, class Origins>
void best_predecessors(const double* transitions, const Scores& scores, Scores& next, Origins& from) {
  const Index n = scores.size();
  for (Index j = 0; j < n; ++j) {
    next[j] = scores[0] + transitions[j];
    from[j] = 0;
  }
  for (Index i = 1; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      const double candidate = scores[i] + transitions[i * n + j];
      // Without a branch: which state is better cannot be predicted.
      const Index better = -static_cast<Index>(candidate > next[j]);
      from[j] = (from[j] & ~better) | (i & better);
      next[j] = std::max(next[j], candidate);
    }
  }
}

// Which state each state of each frame comes from.
template <int N>
class Origins {  // two bits for each of up to four states
 public:
  Origins(Index n_frames, Index) : codes_(static_cast<std::size_t>(n_frames)) {}
  void set(Index t, const Eigen::Matrix<Index, N, 1>& from) {
    unsigned code = 0;
    for (int j = 0; j < N; ++j) code |= static_cast<unsigned>(from[j]) << (2 * j);
    set(t, static_cast<std::uint8_t>(code));
  }
  void set(Index t, std::uint8_t code) { codes_.data()[t] = code; }
  Index operator()(Index t, Index state) const { return codes_.data()[t] >> (2 * state) & 3; }

 private:
  KeptMemory<std::uint8_t> codes_;
};

template <>
class Origins<Eigen::Dynamic> {
 public:
  Origins(Index n_frames, Index n_states) : n_states_(n_states), from_(static_cast<std::size_t>(n_frames * n_states)) {}
  void set(Index t, const Eigen::Matrix<Index, Eigen::Dynamic, 1>& from) {
    for (Index j = 0; j < n_states_; ++j) {
      from_[static_cast<std::size_t>(t * n_states_ + j)] = static_cast<std::uint16_t>(from[j]);
    }
  }
  Index operator()(Index t, Index state) const { return from_[static_cast<std::size_t>(t * n_states_ + state)]; }

 private:
  Index n_states_;
  std::vector<std::uint16_t> from_;
};

// Steps of few states with ordinary evidence, in registers: scores_j <- max_i (scores_i + log A_ij) + log w_j. From
// frame t on, up to the first frame that has other evidence, or a gap before it; returns it. Some state was possible at
// the frame before, and leads to one: so is some state at each of these frames.
template <int N>
Index advance_ordinary(const EvidenceRows& evidence, const double* transitions, Index t, double* scores,
                       Origins<N>& origins) {
  // In registers: hence single numbers, and no functions on arrays.
  double own[N], a[N * N];
  for (int i = 0; i < N; ++i) own[i] = scores[i];
  for (int i = 0; i < N * N; ++i) a[i] = transitions[i];
  for (; t < evidence.n_frames() && evidence.steps(t) == 1; ++t) {
    const double* const row = evidence.row(t);
    double pivot = row[0], least = row[0], sum = row[0];
    for (int i = 1; i < N; ++i) {
      pivot = row[i] > pivot ? row[i] : pivot;
      least = row[i] < least ? row[i] : least;
      sum += row[i];
    }
    if (!(pivot - least <= kOrdinarySpread) || sum != sum) break;
    double next[N];
    unsigned code = 0;
    for (int j = 0; j < N; ++j) {
      double best = own[0] + a[j];
      unsigned origin = 0;
      for (int i = 1; i < N; ++i) {
        const double candidate = own[i] + a[i * N + j];
        // Without a branch: which state is better cannot be predicted.
        const unsigned better = 0U - static_cast<unsigned>(candidate > best);
        origin ^= (origin ^ static_cast<unsigned>(i)) & better;
        best = candidate > best ? candidate : best;
      }
      next[j] = best + (row[j] - pivot);
      code |= origin << (2 * j);
    }
    origins.set(t, static_cast<std::uint8_t>(code));
    if (t % kRescale == 0) {
      double most = next[0];
      for (int j = 1; j < N; ++j) most = next[j] > most ? next[j] : most;
      for (int j = 0; j < N; ++j) next[j] -= most;
    }
    for (int j = 0; j < N; ++j) own[j] = next[j];
  }
  for (int i = 0; i < N; ++i) scores[i] = own[i];
  return t;
}

// N states, or any number of them if N is Eigen::Dynamic.
template <int N>
Status viterbi(const EvidenceRows& evidence, const LogChain& chain, std::int64_t* path) {
  using Scores = Eigen::Matrix<double, N, 1>;
  const Index n_frames = evidence.n_frames(), n = chain.n_states();
  Origins<N> origins(n_frames, n);
  Scores scores = chain.startprob, next(n);
  Eigen::Matrix<Index, N, 1> from(n);
  RowMatrix across_gap;
  std::int64_t last_gap = 1;
  Status status;
  for (Index t = 0; t < n_frames; ++t) {
    if constexpr (N != Eigen::Dynamic) {
      if (t > 0) t = advance_ordinary<N>(evidence, chain.transmat.data(), t, scores.data(), origins);
      if (t == n_frames) break;
    }
    const std::int64_t steps = evidence.steps(t);
    if (t % kFramesBetweenChecks == 0 || steps > 1) check_interruption();
    if (t == 0 && steps > 0) {
      // What happened before the first frame is summed over, not chosen.
      NumberVector<Scaled> message = chain.chain.startprob, scratch(n);
      predict_forward(chain.chain, steps, message, scratch);
      for (Index i = 0; i < n; ++i) scores[i] = message[i].log();
    } else if (t > 0) {
      if (steps != 1 && steps != last_gap) {
        across_gap = chain.power(steps);
        last_gap = steps;
      }
      best_predecessors(steps == 1 ? chain.transmat.data() : across_gap.data(), scores, next, from);
      scores = next;
      origins.set(t, from);
    }
    if (!add_ordinary_evidence(evidence.row(t), scores)) {
      status.outcome = add_evidence(evidence.row(t), scores, status.column);
    }
    const double largest = scores.maxCoeff();
    if (status.ok() && largest == kNever) status.outcome = Outcome::impossible;
    if (!status.ok()) {
      status.frame = t;
      return status;
    }
    if (t % kRescale == 0) scores.array() -= largest;
  }
  Index state = 0;
  scores.maxCoeff(&state);
  for (Index t = n_frames - 1; t >= 0; --t) {
    path[t] = state;
    state = origins(t, state);
  }
  return status;
}

}  // namespace detail

// path (T): argmax over x_1..x_T of p(x_1..x_T | y_1..y_T) for the states at the frames, whatever happened in gaps
// between them; of equally probable predecessors the first state wins. At most 65536 states. Every row of the
// transition matrix has a number above zero.
inline Status viterbi(const EvidenceRows& evidence, const LogChain& chain, std::int64_t* path) {
  switch (chain.n_states()) {
    case 2:
      return detail::viterbi<2>(evidence, chain, path);
    case 3:
      return detail::viterbi<3>(evidence, chain, path);
    case 4:
      return detail::viterbi<4>(evidence, chain, path);
    default:
      return detail::viterbi<Eigen::Dynamic>(evidence, chain, path);
  }
}

}  // namespace drhmm
