// The two number types of a recursion, and which of them a chain needs.
#pragma once

#include "drhmm/recursion/scaled.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

template <class Number>
using NumberVector = Eigen::Matrix<Number, Eigen::Dynamic, 1>;
template <class Number>
using NumberMatrix = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic>;

enum class Range {
  mixing,   // every transition is possible and none is tiny: one step makes up for almost any evidence
  checked,  // zeros or small entries: double, watching for messages that leave its range
  scaled    // tiny entries: Scaled from the start
};

constexpr double kMixing = 0x1p-20;
constexpr double kTiny = 0x1p-40;

inline Range range_of(const ConstRows& transmat, const Eigen::Map<const Vector>& startprob) {
  const auto tiny = [](double p) { return p > 0 && p < kTiny; };
  if (transmat.unaryExpr(tiny).any() || startprob.unaryExpr(tiny).any()) return Range::scaled;
  const bool small_start = (startprob.array() > 0 && startprob.array() < kMixing).any();
  return transmat.minCoeff() >= kMixing && !small_start ? Range::mixing : Range::checked;
}

}  // namespace drhmm
