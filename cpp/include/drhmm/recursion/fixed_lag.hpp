// Fixed-lag smoothing: every frame waits for the next `lag` frames and no longer.
#pragma once

#include <algorithm>

#include "drhmm/recursion/messages.hpp"

namespace drhmm {

// posteriors (T, S): p(x_t = i | y_1..y_min(t+lag, T)). Work per frame grows with lag.
template <class Number>
Status fixed_lag(const ConstRows& log_ratios, const Chain<Number>& chain, Index lag, Rows posteriors) {
  std::vector<Number> memory;
  auto forward = message_storage(posteriors, memory);
  Status status = keep_forward(log_ratios, chain, forward);
  if (!status.ok()) return status;

  NumberVector<Number> backward(chain.n_states());
  NumberVector<Number> conditioned(chain.n_states());
  for (Index t = 0; t < log_ratios.rows(); ++t) {
    backward.setOnes();
    const Index horizon = lag < log_ratios.rows() - t ? t + lag : log_ratios.rows() - 1;
    for (Index later = horizon; later > t && status.ok(); --later) {
      conditioned = backward;
      drop_unreachable(forward.col(later), conditioned);
      status.outcome = condition(log_ratios.row(later).data(), chain.range, conditioned, status.column);
      backward.noalias() = chain.transmat * conditioned;
    }
    conditioned = forward.col(t).cwiseProduct(backward);
    if (status.ok() && !normalize(conditioned, posteriors.row(t).data())) status.outcome = Outcome::out_of_range;
    if (!status.ok()) {
      status.frame = t;
      return status;
    }
  }
  return status;
}

}  // namespace drhmm
