// A chain whose transitions are all stored, zeros included.
//
// Operators have the same names for every kind of chain and value:
//   forward(in, out)   out_j = sum_i in_i A_ij      backward(in, out)   out_i = sum_j A_ij in_j
//   forward(in, w, out), backward(in, w, out)       the same, with weights of the columns on the later side
//   weigh(m, w)        m_i <- m_i w_c(i)            by_column(m, out)   out_c = sum of the states of column c
//   count(before, after, sums), for_each_count(use)  expected transitions, see there
// Columns are the classes that have evidence; a column has one state here, and several in stages.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "drhmm/chain/values.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// -log2 of the smallest positive entry.
inline double smallest_in_bits(const double* values, Index n) {
  double least = 1;
  for (Index i = 0; i < n; ++i) {
    if (values[i] > 0) least = std::min(least, values[i]);
  }
  return -std::log2(least);
}

// N states; 0: any number.
template <int N>
class Dense {
 public:
  static constexpr int kStates = N;
  // Registers of one message that are computed at a time, where N is 0.
  static constexpr int kMostRegisters = kLanes<double> < 16 ? 16 / kLanes<double> : 1;

  // transmat (S, S), or its logarithms for best paths
  explicit Dense(const RowMatrix& transmat)
      : n_(transmat.rows()),
        stride_(N > 0 ? N : (n_ + kLanes<double> - 1) / kLanes<double> * kLanes<double>),
        forward_(static_cast<std::size_t>((n_ * stride_ + kLanes<double> - 1) / kLanes<double>)),
        backward_(forward_) {
    double* const by_first = reinterpret_cast<double*>(forward_.data());
    double* const by_second = reinterpret_cast<double*>(backward_.data());
    for (Index i = 0; i < n_; ++i) {
      for (Index j = 0; j < n_; ++j) by_first[i * stride_ + j] = by_second[j * stride_ + i] = transmat(i, j);
    }
  }

  Index n_states() const { return N > 0 ? N : n_; }
  Index n_columns() const { return n_states(); }
  // Numbers of a message, and of the weights of a frame: padded if one message fills vector registers.
  template <class Value>
  Index stride() const {
    return N > 0 ? N : (std::is_same_v<Value, double> ? stride_ : n_);
  }
  template <class Value>
  Index column_stride() const {
    return stride<Value>();
  }
  Index n_counts() const { return n_states() * n_states(); }

  template <class Value>
  DRHMM_INLINE void forward(const Value* in, Value* out) const {
    product<Weighing::none>(by_first(), in, in, out);
  }
  template <class Value>
  DRHMM_INLINE void backward(const Value* in, Value* out) const {
    product<Weighing::none>(by_second(), in, in, out);
  }
  template <class Value>
  DRHMM_INLINE void forward(const Value* in, const Value* w, Value* out) const {
    product<Weighing::after>(by_first(), in, w, out);
  }
  template <class Value>
  DRHMM_INLINE void backward(const Value* in, const Value* w, Value* out) const {
    product<Weighing::before>(by_second(), in, w, out);
  }
  template <class Value>
  DRHMM_INLINE void weigh(Value* m, const Value* w) const {
    for (Index j = 0; j < n_states(); ++j) m[j] = m[j] * w[j];
  }
  template <class Value>
  DRHMM_INLINE void by_column(const Value* m, Value* out) const {
    copy_values(m, n_states(), out);
  }

  // Where A has logarithms: next_j <- w_j + max_i scores_i + A_ij, from_j <- the first i of the maximum; w, next and
  // from (stride).
  template <class Code>
  DRHMM_INLINE void best(const double* scores, const double* w, double* next, Code* from) const {
    if constexpr (N == 0) {
      tiles<2>([&](auto tile, Index first) { tile_best<tile>(scores, w, next, from, first); });
    } else {
      for (int j = 0; j < N; ++j) {
        double candidates[N], most = 0;
        for (int i = 0; i < N; ++i) {
          candidates[i] = scores[i] + by_first()[i * N + j];
          most = i == 0 || candidates[i] > most ? candidates[i] : most;
        }
        // Counts the states before the best one by signs of differences: branches would be mispredicted.
        std::uint64_t origin = 0, is_before = 1;
        for (int i = 0; i < N - 1; ++i) origin += is_before &= sign_bit(candidates[i] - most);
        next[j] = most + w[j];
        from[j] = static_cast<Code>(origin);
      }
    }
  }

  // sums_ij += before_i after_j; a count is that times A_ij.
  template <class Value>
  DRHMM_INLINE void count(const Value* before, const Value* after, Value* sums) const {
    for (Index i = 0; i < n_states(); ++i) {
      for (Index j = 0; j < n_states(); ++j) sums[i * n_states() + j] += before[i] * after[j];
    }
  }
  // Calls use(k, i, j, factor): sums[k] * factor is the expected number of transitions from column i to j.
  template <class Use>
  void for_each_count(const Use& use) const {
    for (Index i = 0; i < n_states(); ++i) {
      for (Index j = 0; j < n_states(); ++j) {
        use(i * n_states() + j, i, j, by_first()[i * stride_ + j]);
      }
    }
  }

 private:
  enum class Weighing { none, before, after };

  template <Weighing weighing, class Value>
  DRHMM_INLINE void product(const double* matrix, const Value* in, const Value* w, Value* out) const {
    if constexpr (std::is_same_v<Value, double> && N == 0) {
      tiles<kMostRegisters>([&](auto tile, Index first) { tile_product<weighing, tile>(matrix, in, w, out, first); });
    } else if constexpr (N > 0) {
      Value sums[N];
      if constexpr (std::is_same_v<Value, double>) {  // does not wait for the weights
        for (int j = 0; j < N; ++j) sums[j] = in[0] * entry<weighing>(matrix, w, 0, j);
        for (int i = 1; i < N; ++i) {
          for (int j = 0; j < N; ++j) sums[j] += in[i] * entry<weighing>(matrix, w, i, j);
        }
        copy_values(sums, N, out);
      } else {
        for (int i = 0; i < N; ++i) {
          const Value x = weighing == Weighing::before ? in[i] * w[i] : in[i];
          for (int j = 0; j < N; ++j) {
            if (i == 0) {
              sums[j] = x * matrix[j];
            } else {
              sums[j] += x * matrix[i * N + j];
            }
          }
        }
        for (int j = 0; j < N; ++j) out[j] = weighing == Weighing::after ? sums[j] * w[j] : sums[j];
      }
    } else {
      constexpr Index kSome = 8;
      for (Index first = 0; first < n_; first += kSome) {
        const Index count = std::min(kSome, n_ - first);
        Value sums[kSome]{};
        for (Index i = 0; i < n_; ++i) {
          const Value x = weighing == Weighing::before ? in[i] * w[i] : in[i];
          for (Index j = 0; j < count; ++j) sums[j] += x * matrix[i * stride_ + first + j];
        }
        for (Index j = 0; j < count; ++j) {
          out[first + j] = weighing == Weighing::after ? sums[j] * w[first + j] : sums[j];
        }
      }
    }
  }

  template <Weighing weighing>
  static DRHMM_INLINE double entry(const double* matrix, const double* w, int i, int j) {
    if constexpr (weighing == Weighing::before) return matrix[i * N + j] * w[i];
    if constexpr (weighing == Weighing::after) return matrix[i * N + j] * w[j];
    return matrix[i * N + j];
  }

  // Calls use(registers, first) for tiles of columns that fill `most` registers, then for smaller ones.
  template <int most, class Use>
  DRHMM_INLINE void tiles(const Use& use, Index first = 0) const {
    for (; first + most * kLanes<double> <= stride_; first += most * kLanes<double>) {
      use(std::integral_constant<int, most>(), first);
    }
    if constexpr (most > 1) tiles<most / 2>(use, first);
  }

  // Some columns of one message in vector registers; in, w, out (stride).
  template <Weighing weighing, int kRegisters>
  DRHMM_INLINE void tile_product(const double* matrix, const double* in, const double* w, double* out,
                                 Index first) const {
    constexpr int kSums = kRegisters > 1 ? 2 : 4;  // they hide the latency of additions
    Lanes<double> sums[kSums][kRegisters] = {};
    const double* row = matrix + first;
    const auto add = [&](int which, Index i) {
      const double x = weighing == Weighing::before ? in[i] * w[i] : in[i];
      for (int r = 0; r < kRegisters; ++r) sums[which][r] += x * load(row + r * kLanes<double>);
      row += stride_;
    };
    Index i = 0;
    for (; i + kSums <= n_; i += kSums) {
      for (int which = 0; which < kSums; ++which) add(which, i + which);
    }
    for (int which = 0; which < kSums - 1; ++which) {
      if (i + which < n_) add(which, i + which);
    }
    for (int r = 0; r < kRegisters; ++r) {
      Lanes<double> sum = sums[0][r] + sums[1][r];
      if constexpr (kSums == 4) sum += sums[2][r] + sums[3][r];
      if constexpr (weighing == Weighing::after) sum *= load(w + first + r * kLanes<double>);
      store<double>(sum, out + first + r * kLanes<double>);
    }
  }

  // Best predecessors for some columns. Two halves of the states, each in order: the first of equals wins.
  template <int kRegisters, class Code>
  DRHMM_INLINE void tile_best(const double* scores, const double* w, double* next, Code* from, Index first) const {
    using Origins = typename Register<double>::Unsigned;
    Lanes<double> best[2][kRegisters];
    Origins origin[2][kRegisters];
    const Index half = n_ / 2;
    for (int r = 0; r < kRegisters; ++r) {
      for (int h = 0; h < 2; ++h) {
        const Index i = h == 0 ? 0 : half;
        best[h][r] = scores[i] + load(by_first() + i * stride_ + first + r * kLanes<double>);
        origin[h][r] = Origins{} + static_cast<std::uint64_t>(i);
      }
    }
    const auto improve = [&](int h, Index i) {
      const Origins own = Origins{} + static_cast<std::uint64_t>(i);
      for (int r = 0; r < kRegisters; ++r) {
        const Lanes<double> candidate = scores[i] + load(by_first() + i * stride_ + first + r * kLanes<double>);
        origin[h][r] = candidate > best[h][r] ? own : origin[h][r];
        best[h][r] = larger(candidate, best[h][r]);
      }
    };
    for (Index i = 1; i < half; ++i) improve(0, i), improve(1, half + i);
    if (n_ > 2 * half) improve(1, n_ - 1);
    for (int r = 0; r < kRegisters; ++r) {
      store_low_bits(best[1][r] > best[0][r] ? origin[1][r] : origin[0][r], from + first + r * kLanes<double>);
      store<double>(larger(best[1][r], best[0][r]) + load(w + first + r * kLanes<double>),
                    next + first + r * kLanes<double>);
    }
  }

  // (S, stride) A_ij by i, and by j
  const double* by_first() const { return reinterpret_cast<const double*>(forward_.data()); }
  const double* by_second() const { return reinterpret_cast<const double*>(backward_.data()); }

  Index n_, stride_;
  std::vector<Lanes<double>> forward_, backward_;  // registers, so that rows do not straddle lines of the cache
};

}  // namespace drhmm
