// Forward ratios rf_i(t) = p(x_t = i | y_1..y_t) / p(x_t = pivot | y_1..y_t), up to a power of two per frame.
#pragma once

#include "drhmm/interruption.hpp"
#include "drhmm/recursion/step.hpp"

namespace drhmm {

// Calls visit(t, message) with the forward message of each frame; visit may return an outcome that stops the pass.
template <class Number, class Visit>
Status forward_pass(const EvidenceRows& evidence, const Chain<Number>& chain, const Visit& visit) {
  NumberVector<Number> message = chain.startprob;
  NumberVector<Number> scratch(chain.n_states());
  Status status;
  for (Index t = 0; t < evidence.n_frames(); ++t) {
    if (t % kFramesBetweenChecks == 0) check_interruption();
    status.outcome = predict_forward(chain, evidence.steps(t), message, scratch);
    if (status.ok()) status.outcome = condition(evidence.row(t), chain.range, message, status.column);
    if (status.ok()) status.outcome = visit(t, message);
    if (!status.ok()) {
      status.frame = t;
      return status;
    }
  }
  return status;
}

// posteriors (T, S): p(x_t = i | y_1..y_t).
template <class Number>
Status filter(const EvidenceRows& evidence, const Chain<Number>& chain, Rows posteriors) {
  const bool is_done = chain.mixing != nullptr && evidence.dt == nullptr &&
                       chain.mixing->filter(evidence.row(0), evidence.n_frames(), posteriors.data());
  if (is_done) return {};
  return forward_pass(evidence, chain, [&](Index t, const NumberVector<Number>& message) {
    return normalize(message, posteriors.row(t).data()) ? Outcome::ok : Outcome::out_of_range;
  });
}

}  // namespace drhmm
