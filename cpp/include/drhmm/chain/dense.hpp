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
  static constexpr Index kTile = 16;  // columns at a time of one message, where N is 0

  // transmat (S, S), or its logarithms for best paths
  explicit Dense(const RowMatrix& transmat)
      : n_(transmat.rows()),
        stride_(N > 0 ? N : (n_ + kTile - 1) / kTile * kTile),
        forward_(static_cast<std::size_t>(n_ * stride_)),
        backward_(forward_) {
    for (Index i = 0; i < n_; ++i) {
      for (Index j = 0; j < n_; ++j) {
        forward_[static_cast<std::size_t>(i * stride_ + j)] = transmat(i, j);
        backward_[static_cast<std::size_t>(j * stride_ + i)] = transmat(i, j);
      }
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
    product<Weighing::none>(forward_.data(), in, in, out);
  }
  template <class Value>
  DRHMM_INLINE void backward(const Value* in, Value* out) const {
    product<Weighing::none>(backward_.data(), in, in, out);
  }
  template <class Value>
  DRHMM_INLINE void forward(const Value* in, const Value* w, Value* out) const {
    product<Weighing::after>(forward_.data(), in, w, out);
  }
  template <class Value>
  DRHMM_INLINE void backward(const Value* in, const Value* w, Value* out) const {
    product<Weighing::before>(backward_.data(), in, w, out);
  }
  template <class Value>
  DRHMM_INLINE void weigh(Value* m, const Value* w) const {
    for (Index j = 0; j < n_states(); ++j) m[j] = m[j] * w[j];
  }
  template <class Value>
  DRHMM_INLINE void by_column(const Value* m, Value* out) const {
    copy_values(m, n_states(), out);
  }

  // sums_ij += before_i after_j; a count is that times A_ij.
  template <class Value>
  DRHMM_INLINE void count(const Value* before, const Value* after, Value* sums) const {
    for (Index i = 0; i < n_states(); ++i) {
      for (Index j = 0; j < n_states(); ++j) sums[i * n_states() + j] += before[i] * after[j];
    }
  }
  // Calls use(k, i, j, factor): sums[k] * factor is a number of transitions from column i to column j.
  template <class Use>
  void for_each_count(const Use& use) const {
    for (Index i = 0; i < n_states(); ++i) {
      for (Index j = 0; j < n_states(); ++j) {
        use(i * n_states() + j, i, j, forward_[static_cast<std::size_t>(i * stride_ + j)]);
      }
    }
  }

 private:
  enum class Weighing { none, before, after };

  template <Weighing weighing, class Value>
  DRHMM_INLINE void product(const double* matrix, const Value* in, const Value* w, Value* out) const {
    if constexpr (std::is_same_v<Value, double> && N == 0) {
      product_in_registers<weighing>(matrix, in, w, out);
    } else if constexpr (std::is_same_v<Value, Best> && N == 0) {
      best_in_registers(matrix, in, out);
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
          const Value x = weighing == Weighing::before ? times(in[i], w[i]) : in[i];
          for (int j = 0; j < N; ++j) {
            if (i == 0) {
              sums[j] = x * matrix[j];
            } else {
              sums[j] += x * matrix[i * N + j];
            }
          }
        }
        for (int j = 0; j < N; ++j) out[j] = weighing == Weighing::after ? times(sums[j], w[j]) : sums[j];
      }
    } else {
      constexpr Index kSome = 8;
      for (Index first = 0; first < n_; first += kSome) {
        Value sums[kSome];
        for (Index j = 0; j < kSome; ++j) sums[j] = zero<Value>();
        for (Index i = 0; i < n_; ++i) {
          const Value x = weighing == Weighing::before ? times(in[i], w[i]) : in[i];
          for (Index j = 0; j < kSome; ++j) sums[j] += x * matrix[i * stride_ + first + j];
        }
        const Index count = std::min(kSome, n_ - first);
        for (Index j = 0; j < count; ++j) {
          out[first + j] = weighing == Weighing::after ? times(sums[j], w[first + j]) : sums[j];
        }
      }
    }
  }

  // Best values have no weights.
  template <class Value>
  static DRHMM_INLINE Value times(const Value& value, const Value& weight) {
    if constexpr (std::is_same_v<Value, Best>) {
      return (void)weight, value;
    } else {
      return value * weight;
    }
  }
  template <Weighing weighing>
  static DRHMM_INLINE double entry(const double* matrix, const double* w, int i, int j) {
    if constexpr (weighing == Weighing::before) return matrix[i * N + j] * w[i];
    if constexpr (weighing == Weighing::after) return matrix[i * N + j] * w[j];
    return matrix[i * N + j];
  }

  // One message, its states in vector registers; in, w, out (stride_).
  template <Weighing weighing>
  DRHMM_INLINE void product_in_registers(const double* matrix, const double* in, const double* w, double* out) const {
    constexpr int kRegisters =
        static_cast<int>(kTile) / kLanes<double> > 0 ? static_cast<int>(kTile) / kLanes<double> : 1;
    constexpr Index kStep = kRegisters * kLanes<double>;
    for (Index first = 0; first < stride_; first += kStep) {
      Lanes<double> sums[2][kRegisters];  // two sums hide the latency of additions
      for (int r = 0; r < kRegisters; ++r) sums[0][r] = sums[1][r] = Lanes<double>{};
      const double* row = matrix + first;
      Index i = 0;
      const auto add = [&](int which) {
        const double x = weighing == Weighing::before ? in[i] * w[i] : in[i];
        for (int r = 0; r < kRegisters; ++r) sums[which][r] += x * load(row + r * kLanes<double>);
        row += stride_;
        ++i;
      };
      while (i + 2 <= n_) {
        add(0);
        add(1);
      }
      if (i < n_) add(0);
      for (int r = 0; r < kRegisters; ++r) {
        Lanes<double> sum = sums[0][r] + sums[1][r];
        if constexpr (weighing == Weighing::after) sum *= load(w + first + r * kLanes<double>);
        store<double>(sum, out + first + r * kLanes<double>);
      }
    }
  }

  // Best predecessors, several columns at a time; registers hold origins as doubles.
  DRHMM_INLINE void best_in_registers(const double* matrix, const Best* in, Best* out) const {
    constexpr int kRegisters = 2;  // two hide the latency of comparisons
    constexpr Index kStep = kRegisters * kLanes<double>;
    for (Index first = 0; first < n_; first += kStep) {
      Lanes<double> best[kRegisters], from[kRegisters] = {};
      for (int r = 0; r < kRegisters; ++r) best[r] = in[0].score + load(matrix + first + r * kLanes<double>);
      for (Index i = 1; i < n_; ++i) {
        const Lanes<double> origin = all(static_cast<double>(i));
        for (int r = 0; r < kRegisters; ++r) {
          const Lanes<double> candidate = in[i].score + load(matrix + i * stride_ + first + r * kLanes<double>);
          const auto is_better = candidate > best[r];
          from[r] = is_better ? origin : from[r];
          best[r] = is_better ? candidate : best[r];
        }
      }
      for (Index j = first; j < std::min(first + kStep, n_); ++j) {
        const auto r = (j - first) / kLanes<double>, l = (j - first) % kLanes<double>;
        out[j] = Best(lane_of(best[r], l), static_cast<std::int64_t>(lane_of(from[r], l)));
      }
    }
  }

  Index n_, stride_;
  std::vector<double> forward_, backward_;  // (S, stride): A_ij by i, and by j
};

}  // namespace drhmm
