// The most probable path, in max-product ratios.
#pragma once

#include <cstdint>
#include <vector>

#include "drhmm/recursion/step.hpp"

namespace drhmm {

namespace detail {

// A^dt as one matrix, (S, S); false if it is out of range.
template <class Number>
bool power(const Chain<Number>& chain, std::int64_t dt, NumberMatrix<Number>& result) {
  result.setIdentity(chain.n_states(), chain.n_states());
  return chain.powers.for_each_factor(dt, [&](const NumberMatrix<Number>& factor) {
    result = (result * factor).eval();
    return true;
  });
}

}  // namespace detail

// path (T): argmax over x_1..x_T of p(x_1..x_T | y_1..y_T) for the states at the frames, whatever happened in gaps
// between them; of equally probable predecessors the first state wins.
template <class Number>
Status viterbi(const EvidenceRows& evidence, const Chain<Number>& chain, std::int64_t* path) {
  const Index n_states = chain.n_states();
  const Index n_frames = evidence.n_frames();
  std::vector<std::int32_t> origin(static_cast<std::size_t>(n_frames * n_states));
  NumberVector<Number> message = chain.startprob;
  NumberVector<Number> predicted(n_states);
  NumberMatrix<Number> across_gap;
  Status status;
  for (Index t = 0; t < n_frames; ++t) {
    const std::int64_t steps = evidence.steps(t);
    if (t == 0) {
      status.outcome = predict_forward(chain, steps, message, predicted);
    } else if (steps != 1 && !detail::power(chain, steps, across_gap)) {
      status.outcome = Outcome::out_of_range;
    } else {
      const NumberMatrix<Number>& transmat = steps == 1 ? chain.transmat : across_gap;
      for (Index j = 0; j < n_states; ++j) {
        Index best = 0;
        predicted[j] = message.cwiseProduct(transmat.col(j)).maxCoeff(&best);
        origin[static_cast<std::size_t>(t * n_states + j)] = static_cast<std::int32_t>(best);
      }
      message = predicted;
    }
    if (status.ok()) status.outcome = condition(evidence.row(t), chain.range, message, status.column);
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
