// The weights of a block of frames: exponentials of log ratios relative to the likeliest column of each frame.
#pragma once

#include <algorithm>
#include <type_traits>

#include "drhmm/recursion/evidence.hpp"
#include "drhmm/recursion/stretch.hpp"

namespace drhmm {

constexpr Index kBlock = 8;  // frames

// Whether messages of N states (0: any number) fit in registers.
template <class Value, int N>
constexpr bool kInRegisters = N > 0 && N <= (kWidth<Value> > 1 ? 8 : 4);

// N columns; 0: any number.
template <class Value, int N>
class BlockWeights {
 public:
  // Rows whose weights are computed together: exponentials are computed four at a time.
  static constexpr Index kRowsTogether = N == 2 || N == 3 ? 4 : 1;

  // stride: numbers of the weights of a frame; budget: the largest sum over a block of the spread of log ratios
  BlockWeights(const Evidence& evidence, const StretchGroup& group, Index stride, bool is_mixing, double budget)
      : evidence_(evidence), group_(group), stride_(stride), is_mixing_(is_mixing), budget_(budget) {}

  Value pivots[kBlock] = {};  // the log ratio of weight 1 in each frame

  // x (kBlock, columns) <- log ratios; 0 after the end of a stretch
  void read(Index first, Index count, Value* x) const {
    const Index n = n_columns();
    if constexpr (kLanesHere == 1) {
      const double* from = evidence_.row(group_[0].from + first);
      const Index n_there = std::clamp<Index>(group_[0].n_steps() - first, 0, count);
      for (Index k = 0; k < rows_of(count); ++k, from += n) {
        for (Index c = 0; c < n; ++c) x[k * columns_here() + c] = k < n_there ? from[c] : 0.0;
      }
    } else {
      const double* rows[kLanesHere];
      bool whole = count == kBlock;
      for (int l = 0; l < kLanesHere; ++l) {
        rows[l] = evidence_.row(group_[l].from + first);
        whole = whole && group_[l].n_steps() - first >= count;
      }
      if (whole && columns_here() == n) {
        for (Index place = 0; place < kBlock * n; place += kLanesHere) {
          for (int l = 0; l < kLanesHere; ++l) {
            prefetch_read(rows[l] + place + kBlock * n);
            x[place + l] = load(rows[l] + place);
          }
          transpose(x + place);
        }
        return;
      }
      for (int l = 0; l < kLanesHere; ++l) {
        const Index n_there = std::clamp<Index>(group_[l].n_steps() - first, 0, count);
        for (Index k = 0; k < kBlock; ++k) {
          for (Index c = 0; c < n; ++c) put(x[k * columns_here() + c], l, k < n_there ? rows[l][k * n + c] : 0.0);
        }
      }
    }
  }

  // w (kBlock, columns) <- weights. Returns false if unchecked steps could leave the range of double; with several
  // lanes, sets `hard` to 1 in these lanes instead.
  bool weigh(Index first, Index count, Value* w, Value& hard) {
    read(first, count, w);
    Value spread{}, check{};
    relative(w, rows_of(count), spread, check);
    if (!all_below(check, HUGE_VAL)) {
      read(first, count, w);
      for (Index k = 0; k < rows_of(count); ++k) make_plain(w + k * columns_here(), n_columns());
      check = spread = Value{};
      relative(w, rows_of(count), spread, check);
      if (!all_below(check, HUGE_VAL)) {  // partly NaN, or no state is possible
        if constexpr (kLanesHere == 1) return false;
        const Value one = same<Value>(1.0);
        hard = check < HUGE_VAL ? hard : one;
      }
    }
    if (is_mixing_ || all_below(spread, budget_)) return true;
    if constexpr (kLanesHere > 1) {
      const Value one = same<Value>(1.0);
      hard = spread < budget_ ? hard : one;
      return true;
    }
    return false;
  }

  // w (n_rows, columns): log ratios -> weights. Sets pivots.
  void relative(Value* w, Index n_rows, Value& spread, Value& check) {
    if constexpr (kWeighsRows) {
      for (Index k = 0; k < kBlock; k += kRowsTogether) weigh_rows(w, k, spread, check);
      return;
    }
    for (Index k = 0; k < n_rows; ++k) {
      Value* const row = w + k * columns_here();
      Value registers[kHeld ? N : 1];
      if constexpr (kHeld) copy_values(row, N, registers);
      relative_row(kHeld ? registers : row, k, spread, check);
      if constexpr (kHeld) copy_values(registers, N, row);
    }
    make_weights(w, n_rows * columns_here());
  }
  // The same for kRowsTogether rows from row k on.
  DRHMM_INLINE void weigh_rows(Value* w, Index k, Value& spread, Value& check) {
    Value* const rows = w + k * N;
    if constexpr (kRowsTogether > 1) {
      if (is_mixing_) {  // the likeliest state needs no exponential
        check += weights_of_few<N>(rows, pivots + k);
        return;
      }
    }
    Value x[kRowsTogether * N];
    copy_values(rows, kRowsTogether * N, x);
    for (Index r = 0; r < kRowsTogether; ++r) relative_row(x + r * N, k + r, spread, check);
    make_weights(x, kRowsTogether * N);
    copy_values(x, kRowsTogether * N, rows);
  }
  DRHMM_INLINE void relative_row(Value* row, Index k, Value& spread, Value& check) {
    if (is_mixing_) {
      make_relative<false>(row, n_columns(), pivots[k], spread, check);
    } else {
      make_relative<true>(row, n_columns(), pivots[k], spread, check);
    }
    for (Index c = n_columns(); c < columns_here(); ++c) row[c] = same<Value>(kNever);
  }

 private:
  static constexpr int kLanesHere = kWidth<Value>;
  static constexpr bool kHeld = kInRegisters<Value, N>;
  static constexpr bool kWeighsRows = kHeld && kRowsTogether * N % 4 == 0;

  // Whole blocks; for a single sequence of many states only the rows in use.
  static Index rows_of(Index count) { return kLanesHere > 1 || N > 0 ? kBlock : count; }

  Index n_columns() const { return N > 0 ? N : evidence_.n_columns; }
  Index columns_here() const { return N > 0 ? N : stride_; }

  const Evidence& evidence_;
  const StretchGroup& group_;
  Index stride_;
  bool is_mixing_;
  double budget_;
};

}  // namespace drhmm
