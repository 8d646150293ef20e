// A chain with few possible transitions, the only ones stored. Names as in dense.hpp.
#pragma once

#include <algorithm>
#include <vector>

#include "drhmm/chain/values.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

class Sparse {
 public:
  static constexpr int kStates = 0;

  // transmat (S, S). Stores logarithms for best paths.
  Sparse(const RowMatrix& transmat, bool logarithms) : n_(transmat.rows()) {
    const auto fill = [&](const RowMatrix& matrix, Entries& entries) {
      entries.begin.push_back(0);
      for (Index j = 0; j < n_; ++j) {
        for (Index i = 0; i < n_; ++i) {
          if (!(matrix(i, j) > 0)) continue;
          entries.index.push_back(static_cast<int>(i));
          entries.value.push_back(logarithms ? std::log(matrix(i, j)) : matrix(i, j));
        }
        entries.begin.push_back(static_cast<int>(entries.value.size()));
      }
    };
    fill(transmat, into_);
    fill(transmat.transpose(), from_);
  }

  Index n_states() const { return n_; }
  Index n_columns() const { return n_; }
  template <class Value>
  Index stride() const {
    return n_;
  }
  template <class Value>
  Index column_stride() const {
    return n_;
  }
  Index n_counts() const { return static_cast<Index>(from_.value.size()); }

  template <class Value>
  DRHMM_INLINE void forward(const Value* in, Value* out) const {
    product(into_, in, out);
  }
  template <class Value>
  DRHMM_INLINE void backward(const Value* in, Value* out) const {
    product(from_, in, out);
  }
  template <class Value>
  DRHMM_INLINE void forward(const Value* in, const Value* w, Value* out) const {
    forward(in, out);
    weigh(out, w);
  }
  // Overwrites in.
  template <class Value>
  DRHMM_INLINE void backward(Value* in, const Value* w, Value* out) const {
    weigh(in, w);
    backward(in, out);
  }
  template <class Value>
  DRHMM_INLINE void weigh(Value* m, const Value* w) const {
    for (Index j = 0; j < n_; ++j) m[j] = m[j] * w[j];
  }
  template <class Value>
  DRHMM_INLINE void by_column(const Value* m, Value* out) const {
    std::copy_n(m, n_, out);
  }

  template <class Code>
  void best(const double* scores, const double* w, double* next, Code* from) const {
    for (Index j = 0; j < n_; ++j) {
      double most = kNever;
      std::int64_t origin = 0;
      for (int k = into_.begin[at(j)]; k < into_.begin[at(j + 1)]; ++k) {
        const double candidate = scores[into_.index[at(k)]] + into_.value[at(k)];
        origin ^= (origin ^ into_.index[at(k)]) & -static_cast<std::int64_t>(candidate > most);
        most = candidate > most ? candidate : most;
      }
      next[j] = most + w[j];
      from[j] = static_cast<Code>(origin);
    }
  }

  template <class Value>
  DRHMM_INLINE void count(const Value* before, const Value* after, Value* sums) const {
    for (Index i = 0; i < n_; ++i) {
      for (int k = from_.begin[at(i)]; k < from_.begin[at(i + 1)]; ++k)
        sums[k] += before[i] * after[from_.index[at(k)]];
    }
  }
  template <class Use>
  void for_each_count(const Use& use) const {
    for (Index i = 0; i < n_; ++i) {
      for (int k = from_.begin[at(i)]; k < from_.begin[at(i + 1)]; ++k)
        use(k, i, from_.index[at(k)], from_.value[at(k)]);
    }
  }

 private:
  // The compressed columns of A, or of its transpose.
  struct Entries {
    std::vector<int> begin, index;  // (S + 1), (entries)
    std::vector<double> value;      // (entries)
  };

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  template <class Value>
  DRHMM_INLINE void product(const Entries& entries, const Value* in, Value* out) const {
    const int* const index = entries.index.data();
    const double* const value = entries.value.data();
    for (Index j = 0; j < n_; ++j) {
      Value sum{};
      for (int k = entries.begin[at(j)]; k < entries.begin[at(j + 1)]; ++k) sum += in[index[k]] * value[k];
      out[j] = sum;
    }
  }

  Index n_;
  Entries into_, from_;  // by the state entered, and by the state left
};

}  // namespace drhmm
