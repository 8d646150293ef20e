// The Markov chain in the number type of a recursion.
#pragma once

#include <memory>
#include <type_traits>

#include "drhmm/recursion/mixing_sizes.hpp"
#include "drhmm/recursion/number.hpp"
#include "drhmm/recursion/powers.hpp"

namespace drhmm {

// A and A^T in Number, laid out so that both products run down contiguous columns.
template <class Number>
struct Chain {
  NumberMatrix<Number> transmat;    // A
  NumberMatrix<Number> transposed;  // A^T
  NumberVector<Number> startprob;
  Range range;
  Powers<Number> powers;
  std::shared_ptr<const MixingSizes> mixing;  // the fast recursions, for doubles of a mixing chain

  Chain(const ConstRows& a, const Eigen::Map<const Vector>& pi)
      : transmat(a.template cast<Number>()),
        transposed(a.transpose().template cast<Number>()),
        startprob(pi.template cast<Number>()),
        range(range_of(a, pi)) {
    if constexpr (std::is_same_v<Number, double>) {
      if (range == Range::mixing) mixing = mixing_sizes(transmat, startprob);
    }
  }

  Index n_states() const { return startprob.size(); }
  void reach(std::int64_t dt) { powers.reach(transmat, range, dt); }
};

}  // namespace drhmm
