// The most probable path, in max-product ratios.
#pragma once

#include <cstdint>
#include <vector>

#include "drhmm/recursion/step.hpp"

namespace drhmm {

// path (T): argmax over x_1..x_T of p(x_1..x_T | y_1..y_T); of equally probable predecessors the first state wins.
template <class Number>
Status viterbi(const ConstRows& log_ratios, const Chain<Number>& chain, std::int64_t* path) {
  const Index n_states = chain.n_states();
  const Index n_frames = log_ratios.rows();
  std::vector<std::int32_t> origin(static_cast<std::size_t>(n_frames * n_states));
  NumberVector<Number> message = chain.startprob;
  NumberVector<Number> predicted(n_states);
  Status status;
  for (Index t = 0; t < n_frames; ++t) {
    if (t > 0) {
      for (Index j = 0; j < n_states; ++j) {
        Index best = 0;
        predicted[j] = message.cwiseProduct(chain.transmat.col(j)).maxCoeff(&best);
        origin[static_cast<std::size_t>(t * n_states + j)] = static_cast<std::int32_t>(best);
      }
      message = predicted;
    }
    status.outcome = condition(log_ratios.row(t).data(), chain.range, message, status.column);
    if (!status.ok()) {
      status.frame = t;
      return status;
    }
  }
  Index state = 0;
  message.maxCoeff(&state);
  for (Index t = n_frames - 1; t >= 0; --t) {
    path[t] = state;
    state = origin[static_cast<std::size_t>(t * n_states + state)];
  }
  return status;
}

}  // namespace drhmm
