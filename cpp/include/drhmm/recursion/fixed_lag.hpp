// Fixed-lag smoothing: every frame waits for the next `lag` frames and no longer.
#pragma once

#include "drhmm/recursion/messages.hpp"

namespace drhmm {

// posteriors (T, S): p(x_t = i | y_1..y_min(t+lag, T)). Work per frame grows with lag.
template <class Number>
Status fixed_lag(const EvidenceRows& evidence, const Chain<Number>& chain, Index lag, Rows posteriors) {
  std::vector<Number> memory;
  auto forward = message_storage(posteriors, memory);
  Status status = keep_forward(evidence, chain, forward);
  if (!status.ok()) return status;

  NumberVector<Number> backward(chain.n_states());
  NumberVector<Number> scratch(chain.n_states());
  for (Index t = 0; t < evidence.n_frames(); ++t) {
    backward.setOnes();
    const Index horizon = lag < evidence.n_frames() - t ? t + lag : evidence.n_frames() - 1;
    for (Index later = horizon; later > t && status.ok(); --later) {
      if (later % kFramesBetweenChecks == 0) check_interruption();
      drop_unreachable(forward.col(later), backward);
      status.outcome = condition(evidence.row(later), chain.range, backward, status.column);
      if (status.ok()) status.outcome = predict_backward(chain, evidence.steps(later), backward, scratch);
    }
    backward = forward.col(t).cwiseProduct(backward);
    if (status.ok() && !normalize(backward, posteriors.row(t).data())) status.outcome = Outcome::out_of_range;
    if (!status.ok()) {
      status.frame = t;
      return status;
    }
  }
  return status;
}

}  // namespace drhmm
