// Smoothed posteriors r_i(t) = rf_i(t) rb_i(t), and expected transitions on the way back.
#pragma once

#include "drhmm/recursion/messages.hpp"

namespace drhmm {

// posteriors (T, S): p(x_t = i | y_1..y_T).
// If counts is given (and there are no gaps), counts_ij += sum_t p(x_t = i, x_{t+1} = j | y_1..y_T).
template <class Number>
Status smooth(const EvidenceRows& evidence, const Chain<Number>& chain, Rows posteriors, Matrix* counts = nullptr) {
  const bool is_done = chain.mixing != nullptr && evidence.dt == nullptr && counts == nullptr &&
                       chain.mixing->smooth(evidence.row(0), evidence.n_frames(), posteriors.data());
  if (is_done) return {};
  std::vector<Number> memory;
  auto forward = message_storage(posteriors, memory);
  Status status = keep_forward(evidence, chain, forward);
  if (!status.ok()) return status;

  const Index n_states = chain.n_states();
  Matrix sequence_counts = Matrix::Zero(n_states, n_states);
  NumberVector<Number> conditioned(n_states);  // w(y_{t+1}) rb(t+1)
  NumberVector<Number> backward = NumberVector<Number>::Ones(n_states);
  NumberVector<Number> current(n_states);
  NumberVector<Number> smoothed(n_states);
  for (Index t = evidence.n_frames() - 1; t >= 0; --t) {
    if (t % kFramesBetweenChecks == 0) check_interruption();
    const bool last = t + 1 == evidence.n_frames();
    if (!last) {
      conditioned = backward;
      drop_unreachable(current, conditioned);  // current is still the forward message of frame t + 1
      status.outcome = condition(evidence.row(t + 1), chain.range, conditioned, status.column);
      backward = conditioned;
      if (status.ok()) status.outcome = predict_backward(chain, evidence.steps(t + 1), backward, smoothed);
    }
    current = forward.col(t);
    smoothed = current.cwiseProduct(backward);
    if (status.ok() && !normalize(smoothed, posteriors.row(t).data())) status.outcome = Outcome::out_of_range;
    if (!status.ok()) {
      status.frame = t;
      return status;
    }
    if (counts != nullptr && !last) {
      // p(x_t = i, x_{t+1} = j | y) = rf_i(t) A_ij w_j rb_j(t+1) / sum; the sum is that of the smoothed ratios.
      const Number total = smoothed.sum();
      for (Index j = 0; j < n_states; ++j) {
        const Number factor = conditioned[j] / total;
        for (Index i = 0; i < n_states; ++i) {
          sequence_counts(i, j) += double(current[i] * chain.transmat(i, j) * factor);
        }
      }
    }
  }
  if (counts != nullptr) *counts += sequence_counts;
  return status;
}

}  // namespace drhmm
