// How well smoothing recovers known states, and the derivatives of that by evidence and chain.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "drhmm/parallel.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// -sum_t log gamma_t(x_t) of one sequence over its frames of known state, by forward-backward in plain double with a
// division per frame, and the way back through both messages. Transitions P (S, S) and start (S) are weights that need
// not sum to 1; evidence is at most kMostAgainst nats against a state, so that no message of a dense chain underflows.
//
// gamma_t is the normalised product of the messages a_t and b_t and does not depend on the scale of either: normalisers
// count as constants. With u_t = dL / d log a_t, whose own part is gamma_t(i) - [i = x_t],
//   u_{t-1}(i) += sum_j u_t(j) a_{t-1}(i) P_ij / (a_{t-1} P)_j,
// and b_t likewise with P transposed and time reversed.
class SmoothingLoss {
 public:
  static constexpr double kMostAgainst = 500;

  explicit SmoothingLoss(Index n_states) : n_states_(n_states) {}

  // evidence (T, S), rows of NaN where a frame is missing; codes (T), negative where a frame is not judged.
  // Adds dL / d log P to by_transitions (S, S) and dL / d log start to by_start (S), and sets by_evidence (T, S), if
  // they are not null.
  double run(const double* evidence, const std::int64_t* codes, Index n_frames, const double* transitions,
             const double* start, double* by_evidence, double* by_transitions, double* by_start) {
    const Index s = n_states_;
    reserve(n_frames);
    make_weights(evidence, n_frames);
    forward(n_frames, transitions, start);
    backward(n_frames, transitions);
    double loss = 0;
    for (Index t = 0; t < n_frames; ++t) {
      double* const own = own_.data() + t * s;
      if (codes[t] < 0) {
        std::fill(own, own + s, 0.0);
        continue;
      }
      double total = 0;
      for (Index i = 0; i < s; ++i) total += own[i] = a_[at(t, i)] * b_[at(t, i)];
      total = std::max(total, std::numeric_limits<double>::min());
      for (Index i = 0; i < s; ++i) own[i] /= total;
      double& posterior = own[codes[t]];
      loss -= std::log(std::max(posterior, std::numeric_limits<double>::min()));
      posterior -= 1;
    }
    if (by_evidence == nullptr) return loss;
    back_through_forward(n_frames, transitions, by_evidence, by_transitions, by_start);
    back_through_backward(n_frames, transitions, by_evidence, by_transitions);
    for (Index t = 0; t < n_frames; ++t) {
      if (missing_[static_cast<std::size_t>(t)]) std::fill(by_evidence + t * s, by_evidence + (t + 1) * s, 0.0);
    }
    return loss;
  }

 private:
  std::size_t at(Index t, Index i) const { return static_cast<std::size_t>(t * n_states_ + i); }

  void reserve(Index n_frames) {
    const auto size = static_cast<std::size_t>(n_frames * n_states_);
    if (weights_.size() < size) {
      for (std::vector<double>* values : {&weights_, &a_, &b_, &predicted_, &own_}) values->resize(size);
      missing_.resize(static_cast<std::size_t>(n_frames));
    }
    part_.resize(static_cast<std::size_t>(2 * n_states_));
  }

  void make_weights(const double* evidence, Index n_frames) {
    for (Index t = 0; t < n_frames; ++t) {
      const double* const row = evidence + t * n_states_;
      const bool is_missing = std::isnan(row[0]);
      missing_[static_cast<std::size_t>(t)] = is_missing;
      const double best = is_missing ? 0 : *std::max_element(row, row + n_states_);
      for (Index i = 0; i < n_states_; ++i) {
        weights_[at(t, i)] = is_missing ? 1 : std::exp(std::max(row[i] - best, -kMostAgainst));
      }
    }
  }

  // a_t proportional to (a_{t-1} P) w_t, and predicted_t = a_{t-1} P.
  void forward(Index n_frames, const double* transitions, const double* start) {
    const Index s = n_states_;
    for (Index t = 0; t < n_frames; ++t) {
      double* const predicted = predicted_.data() + t * s;
      if (t == 0) {
        std::copy(start, start + s, predicted);
      } else {
        std::fill(predicted, predicted + s, 0.0);
        const double* const before = a_.data() + (t - 1) * s;
        for (Index i = 0; i < s; ++i) {
          for (Index j = 0; j < s; ++j) predicted[j] += before[i] * transitions[i * s + j];
        }
      }
      double total = 0;
      double* const now = a_.data() + t * s;
      for (Index j = 0; j < s; ++j) total += now[j] = predicted[j] * weights_[at(t, j)];
      const double scale = 1 / std::max(total, std::numeric_limits<double>::min());
      for (Index j = 0; j < s; ++j) now[j] *= scale;
    }
  }

  // b_t proportional to P (w_{t+1} b_{t+1}).
  void backward(Index n_frames, const double* transitions) {
    const Index s = n_states_;
    std::fill_n(b_.data() + (n_frames - 1) * s, s, 1.0);
    double* const v = part_.data();
    for (Index t = n_frames - 2; t >= 0; --t) {
      double total = 0;
      for (Index j = 0; j < s; ++j) v[j] = weights_[at(t + 1, j)] * b_[at(t + 1, j)];
      double* const now = b_.data() + t * s;
      for (Index i = 0; i < s; ++i) {
        double sum = 0;
        for (Index j = 0; j < s; ++j) sum += transitions[i * s + j] * v[j];
        total += now[i] = sum;
      }
      const double scale = 1 / std::max(total, std::numeric_limits<double>::min());
      for (Index i = 0; i < s; ++i) now[i] *= scale;
    }
  }

  void back_through_forward(Index n_frames, const double* transitions, double* by_evidence, double* by_transitions,
                            double* by_start) {
    const Index s = n_states_;
    double* const u = part_.data();
    double* const relative = u + s;  // u_t(j) / (a_{t-1} P)_j
    std::fill(u, u + s, 0.0);
    for (Index t = n_frames - 1; t >= 0; --t) {
      for (Index j = 0; j < s; ++j) {
        u[j] += own_[at(t, j)];
        by_evidence[t * s + j] = u[j];
        relative[j] = predicted_[at(t, j)] > 0 ? u[j] / predicted_[at(t, j)] : 0;
      }
      if (t == 0) break;
      for (Index i = 0; i < s; ++i) {
        const double before = a_[at(t - 1, i)];
        double sum = 0;
        for (Index j = 0; j < s; ++j) {
          const double share = before * transitions[i * s + j] * relative[j];
          by_transitions[i * s + j] += share;
          sum += share;
        }
        u[i] = sum;
      }
    }
    for (Index i = 0; i < s; ++i) by_start[i] += u[i];
  }

  void back_through_backward(Index n_frames, const double* transitions, double* by_evidence, double* by_transitions) {
    const Index s = n_states_;
    double* const u = part_.data();
    double* const next = u + s;
    std::fill(u, u + s, 0.0);
    for (Index t = 0; t + 1 < n_frames; ++t) {
      std::fill(next, next + s, 0.0);
      for (Index i = 0; i < s; ++i) {
        double sum = 0;
        for (Index j = 0; j < s; ++j) {
          sum += transitions[i * s + j] * weights_[at(t + 1, j)] * b_[at(t + 1, j)];
        }
        const double relative = sum > 0 ? (u[i] + own_[at(t, i)]) / sum : 0;
        for (Index j = 0; j < s; ++j) {
          const double share = relative * transitions[i * s + j] * weights_[at(t + 1, j)] * b_[at(t + 1, j)];
          by_transitions[i * s + j] += share;
          next[j] += share;
        }
      }
      for (Index j = 0; j < s; ++j) by_evidence[(t + 1) * s + j] += u[j] = next[j];
    }
  }

  Index n_states_;
  std::vector<double> weights_, a_, b_, predicted_, own_;  // (T, S)
  std::vector<char> missing_;                              // (T)
  std::vector<double> part_;                               // (2, S)
};

// The loss of several sequences and its derivatives; evidence and codes hold the sequences one after the other. They
// are added up in a fixed order, so that threads change nothing.
struct SmoothingGradient {
  double loss = 0;
  RowMatrix by_transitions;  // (S, S)
  Vector by_start;           // (S)

  // by_evidence (T, S) is null where the loss alone is wanted.
  static SmoothingGradient of(const ConstRows& evidence, const std::int64_t* codes, const std::vector<Index>& lengths,
                              const ConstRows& transitions, const Eigen::Map<const Vector>& start, int n_threads,
                              double* by_evidence) {
    constexpr Index kMostParts = 64;
    const Index s = evidence.cols(), n_sequences = static_cast<Index>(lengths.size());
    const Index n_parts = std::min(kMostParts, n_sequences);
    std::vector<Index> begins(lengths.size() + 1, 0);
    for (std::size_t k = 0; k < lengths.size(); ++k) begins[k + 1] = begins[k] + lengths[k];
    const SmoothingGradient nothing{0, RowMatrix::Zero(s, s), Vector::Zero(s)};
    std::vector<SmoothingGradient> parts(static_cast<std::size_t>(n_parts), nothing);
    parallel_for(n_parts, n_threads, [&](Index p) {
      SmoothingGradient& own = parts[static_cast<std::size_t>(p)];
      SmoothingLoss sequence(s);
      for (Index k = p * n_sequences / n_parts; k < (p + 1) * n_sequences / n_parts; ++k) {
        check_interruption();
        const Index begin = begins[static_cast<std::size_t>(k)];
        own.loss +=
            sequence.run(evidence.data() + begin * s, codes + begin, lengths[static_cast<std::size_t>(k)],
                         transitions.data(), start.data(), by_evidence == nullptr ? nullptr : by_evidence + begin * s,
                         own.by_transitions.data(), own.by_start.data());
      }
    });
    SmoothingGradient total = nothing;
    for (const SmoothingGradient& part : parts) {
      total.loss += part.loss;
      total.by_transitions += part.by_transitions;
      total.by_start += part.by_start;
    }
    return total;
  }
};

}  // namespace drhmm
