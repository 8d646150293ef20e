// Forward messages of one sequence, kept for a pass back over it.
#pragma once

#include <vector>

#include "drhmm/recursion/filter.hpp"

namespace drhmm {

// Doubles are kept in the array that the posteriors will replace them in, frame by frame; wider numbers have their
// own memory.
inline Eigen::Map<NumberMatrix<double>> message_storage(Rows posteriors, std::vector<double>&) {
  return {posteriors.data(), posteriors.cols(), posteriors.rows()};
}

inline Eigen::Map<NumberMatrix<Scaled>> message_storage(Rows posteriors, std::vector<Scaled>& memory) {
  memory.resize(static_cast<std::size_t>(posteriors.size()));
  return {memory.data(), posteriors.cols(), posteriors.rows()};
}

// Column t of storage <- forward message of frame t.
template <class Number>
Status keep_forward(const EvidenceRows& evidence, const Chain<Number>& chain,
                    Eigen::Map<NumberMatrix<Number>>& storage) {
  return forward_pass(evidence, chain, [&](Index t, const NumberVector<Number>& message) {
    storage.col(t) = message;
    return Outcome::ok;
  });
}

}  // namespace drhmm
