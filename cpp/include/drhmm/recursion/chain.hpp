// The Markov chain in the number type of a recursion, and which number type it needs.
#pragma once

#include "drhmm/recursion/scaled.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

template <class Number>
using NumberVector = Eigen::Matrix<Number, Eigen::Dynamic, 1>;
template <class Number>
using NumberMatrix = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic>;

enum class Range {
  mixing,   // every transition is possible and none is tiny: double cannot lose anything that matters
  checked,  // zeros or small entries: double, watching for messages that leave its range
  scaled    // tiny entries: Scaled from the start
};

inline Range range_of(const ConstRows& transmat, const Eigen::Map<const Vector>& startprob) {
  constexpr double kMixing = 0x1p-20;
  constexpr double kTiny = 0x1p-40;
  const auto tiny = [](double p) { return p > 0 && p < kTiny; };
  if (transmat.unaryExpr(tiny).any() || startprob.unaryExpr(tiny).any()) return Range::scaled;
  const bool small_start = (startprob.array() > 0 && startprob.array() < kMixing).any();
  return transmat.minCoeff() >= kMixing && !small_start ? Range::mixing : Range::checked;
}

// A and A^T in Number, laid out so that both products run down contiguous columns.
template <class Number>
struct Chain {
  NumberMatrix<Number> transmat;    // A
  NumberMatrix<Number> transposed;  // A^T
  NumberVector<Number> startprob;
  Range range;

  Chain(const ConstRows& a, const Eigen::Map<const Vector>& pi)
      : transmat(a.template cast<Number>()),
        transposed(a.transpose().template cast<Number>()),
        startprob(pi.template cast<Number>()),
        range(range_of(a, pi)) {}

  Index n_states() const { return startprob.size(); }
};

}  // namespace drhmm
