// A^dt for gaps in time, from the squares A^2, A^4, A^8, ...: a gap of dt steps costs one product per binary digit of
// dt.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "drhmm/interruption.hpp"
#include "drhmm/recursion/number.hpp"

namespace drhmm {

template <class Number>
class Powers {
 public:
  // Computes the squares that gaps of up to dt steps need. The rows of each are divided by their sum: without that, the
  // rounding errors of row sums double with every square.
  void reach(const NumberMatrix<Number>& transmat, Range range, std::int64_t dt) {
    if (squares_.empty()) squares_.push_back(transmat);
    while (dt >> squares_.size() > 0 && !left_range_) {
      check_interruption();
      NumberMatrix<Number> square = squares_.back() * squares_.back();
      for (Index i = 0; i < square.rows(); ++i) {
        const Number sum = square.row(i).sum();
        for (Index j = 0; j < square.cols(); ++j) square(i, j) = square(i, j) / sum;
      }
      left_range_ = !within_range(square, range);
      if (!left_range_) squares_.push_back(std::move(square));
    }
  }

  // Squares that reach(dt) would compute.
  Index n_missing(std::int64_t dt) const {
    Index missing = 0;
    for (std::size_t k = std::max<std::size_t>(squares_.size(), 1); k < 63 && dt >> k > 0; ++k) ++missing;
    return left_range_ ? 0 : missing;
  }

  // Calls step(A^(2^k)) for every binary digit of dt, while it returns true; false if a square is out of range.
  template <class Step>
  bool for_each_factor(std::int64_t dt, const Step& step) const {
    for (std::size_t k = 0; dt >> k > 0; ++k) {
      if (k == squares_.size()) return false;
      if ((dt >> k & 1) != 0 && !step(squares_[k])) return false;
    }
    return true;
  }

 private:
  // Entries of a power that is kept are 0 or at least 2^-40, those of its square 0 or at least 2^-80: what gets too
  // small is seen before any product underflows.
  static bool within_range(const NumberMatrix<double>& square, Range range) {
    return range == Range::mixing || !square.unaryExpr([](double p) { return p > 0 && p < kTiny; }).any();
  }
  static bool within_range(const NumberMatrix<Scaled>&, Range) { return true; }

  std::vector<NumberMatrix<Number>> squares_;  // A^(2^k)
  bool left_range_ = false;
};

}  // namespace drhmm
