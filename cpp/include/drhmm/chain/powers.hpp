// A^dt for gaps, from the squares A^2, A^4, A^8, ...: one product per binary digit of dt.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "drhmm/chain/dense.hpp"
#include "drhmm/system/interruption.hpp"

namespace drhmm {

template <class Number>
using NumberMatrix = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// a b; compiled once for doubles.
RowMatrix product(const RowMatrix& a, const RowMatrix& b);
inline NumberMatrix<Scaled> product(const NumberMatrix<Scaled>& a, const NumberMatrix<Scaled>& b) {
  NumberMatrix<Scaled> result = NumberMatrix<Scaled>::Constant(a.rows(), b.cols(), Scaled(0));
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index k = 0; k < a.cols(); ++k) {
      for (Index j = 0; j < b.cols(); ++j) result(i, j) += a(i, k) * b(k, j);
    }
  }
  return result;
}

// One square in Number; for double with the products that recursions use.
template <class Number>
struct Square {
  NumberMatrix<Number> matrix;
  Dense<0> products;

  explicit Square(NumberMatrix<Number> power) : matrix(std::move(power)), products(doubles(matrix)) {}

 private:
  static RowMatrix doubles(const NumberMatrix<double>& power) { return power; }
  static RowMatrix doubles(const NumberMatrix<Scaled>&) { return RowMatrix(0, 0); }
};

// Longer gaps extend them without a lock: a fork could copy one that is held.
template <class Number>
class Powers {
 public:
  // of[k]: A^(2^k); complete: false if a gap needs a square that does not fit in Number.
  struct Squares {
    std::vector<std::shared_ptr<const Square<Number>>> of;
    bool complete = true;
    std::unique_ptr<const Squares> before;  // for threads that still use it
  };

  Powers(const RowMatrix& transmat, bool is_mixing)
      : transmat_(transmat), is_mixing_(is_mixing), newest_(new Squares) {}
  ~Powers() { delete newest_.load(); }
  Powers(const Powers&) = delete;
  Powers& operator=(const Powers&) = delete;

  // Squares for gaps of up to dt steps, or those that fit. Divides rows by their sums, because rounding errors of row
  // sums double with every square.
  const Squares& reach(std::int64_t dt) const {
    const Squares* now = newest_.load(std::memory_order_acquire);
    while (now->complete && (now->of.empty() || dt >> now->of.size() > 0)) {
      auto more = std::make_unique<Squares>();
      more->of = now->of;
      if (more->of.empty()) {
        more->of.push_back(std::make_shared<Square<Number>>(NumberMatrix<Number>(transmat_.template cast<Number>())));
      }
      while (more->complete && dt >> more->of.size() > 0) {
        check_interruption();
        const NumberMatrix<Number>& last = more->of.back()->matrix;
        NumberMatrix<Number> square = product(last, last);
        for (Index i = 0; i < square.rows(); ++i) {
          Number sum(0);
          for (Index j = 0; j < square.cols(); ++j) sum += square(i, j);
          for (Index j = 0; j < square.cols(); ++j) square(i, j) = square(i, j) / sum;
        }
        more->complete = is_within_range(square);
        if (more->complete) more->of.push_back(std::make_shared<Square<Number>>(std::move(square)));
      }
      more->before.reset(now);
      if (newest_.compare_exchange_strong(now, more.get(), std::memory_order_acq_rel)) return *more.release();
      more->before.release();  // another thread was faster
    }
    return *now;
  }

  // m <- (A^dt)^T m, or A^dt m, if all powers fit.
  template <bool is_forward>
  void advance(std::int64_t dt, Number* m /* (states) */, Number* scratch /* (states) */) const {
    const Squares& squares = reach(std::max<std::int64_t>(dt, 1));
    const Index n = transmat_.rows();
    for (std::size_t k = 0; dt >> k != 0; ++k) {
      if ((dt >> k & 1) == 0) continue;
      const NumberMatrix<Number>& square = squares.of[k]->matrix;
      for (Index j = 0; j < n; ++j) {
        scratch[j] = Number(0);
        for (Index i = 0; i < n; ++i) scratch[j] += (is_forward ? square(i, j) : square(j, i)) * m[i];
      }
      std::copy_n(scratch, n, m);
    }
  }

  // The approximate number of multiplications of reach(dt).
  Index work_to_reach(std::int64_t dt) const {
    const Squares* now = newest_.load(std::memory_order_acquire);
    const Index n = transmat_.rows();
    Index missing = 0;
    for (std::size_t k = std::max<std::size_t>(now->of.size(), 1); now->complete && k < 63 && dt >> k > 0; ++k)
      ++missing;
    return missing * n * n * n;
  }

 private:
  // Entries of kept powers are 0 or at least 2^-40, those of their squares 0 or at least 2^-80: nothing underflows
  // before it is refused.
  bool is_within_range(const NumberMatrix<Number>& square) const {
    if constexpr (std::is_same_v<Number, Scaled>) {
      return true;
    } else {
      return is_mixing_ || !square.unaryExpr([](double p) { return p > 0 && p < 0x1p-40; }).any();
    }
  }

  RowMatrix transmat_;
  bool is_mixing_;
  mutable std::atomic<const Squares*> newest_;
};

}  // namespace drhmm
