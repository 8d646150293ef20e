// How well filtering finds the true states: its loss, and the derivatives by reverse mode.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "drhmm/types.hpp"

namespace drhmm {

// The loss of one sequence, -sum_t log p(x_t = truth_t | y_1..y_t) over the time steps with a truth (>= 0).
// evidence: log w (T, S), up to a constant per row; rows with a NaN are missing. A: transmat (S, S), rows contiguous.
// Adds d loss / d evidence to by_evidence (T, S) unless that is null.
//
// Forward: u_t = w_t * (A^T a_t-1), a_t = u_t / sum(u_t). Backward, with g_t = d loss / d a_t:
//   d loss / d log w_t = a_t * (g_t - g_t . a_t),   g_t-1 = A (w_t * (g_t - g_t . a_t)) / c_t + its own share.
inline double filtering_loss(const ConstRows& evidence, const std::int64_t* truth, const RowMatrix& transmat,
                             const Vector& startprob, double* by_evidence) {
  const Index n = evidence.rows(), s = evidence.cols();
  constexpr double tiny = 1e-150;
  RowMatrix weights(n, s), filtered(n, s);  // w_t, a_t
  Vector totals(n);                         // c_t
  Vector predicted = startprob;
  double loss = 0;
  for (Index t = 0; t < n; ++t) {
    if (t > 0) predicted.noalias() = transmat.transpose() * filtered.row(t - 1).transpose();
    const bool missing = evidence.row(t).array().isNaN().any();
    const double best = missing ? 0.0 : evidence.row(t).maxCoeff();
    for (Index i = 0; i < s; ++i) weights(t, i) = missing ? 1.0 : std::exp(evidence(t, i) - best);
    filtered.row(t) = weights.row(t).array() * predicted.transpose().array();
    totals[t] = std::max(filtered.row(t).sum(), tiny);
    filtered.row(t) /= totals[t];
    if (truth[t] >= 0) loss -= std::log(std::max(filtered(t, truth[t]), tiny));
  }
  if (by_evidence == nullptr) return loss;
  Vector later = Vector::Zero(s), gradient(s);  // d loss / d a_t by what comes after t
  for (Index t = n - 1; t >= 0; --t) {
    gradient = later;
    if (truth[t] >= 0) gradient[truth[t]] -= 1 / std::max(filtered(t, truth[t]), tiny);
    gradient.array() -= gradient.dot(filtered.row(t));
    if (!evidence.row(t).array().isNaN().any()) {
      for (Index i = 0; i < s; ++i) by_evidence[t * s + i] += filtered(t, i) * gradient[i];
    }
    gradient.array() *= weights.row(t).transpose().array() / totals[t];
    later.noalias() = transmat * gradient;
  }
  return loss;
}

}  // namespace drhmm
