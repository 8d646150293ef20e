// Normalises the posteriors of a block of frames and writes them to the caller's array.
#pragma once

#include <algorithm>

#include "drhmm/recursion/block_weights.hpp"

namespace drhmm {

template <class Value, class Operator>
class BlockPosteriors {
 public:
  // rows: room for kBlock rows and one more register; posteriors (N, C) may be null
  BlockPosteriors(const Operator& op, const StretchGroup& group, double* posteriors, Value* rows)
      : op_(op), group_(group), posteriors_(posteriors), rows_(rows), is_streamed_(posteriors_are_streamed()) {}

  const Value* row(Index k) const { return rows_ + k * n_columns(); }

  // Row k of the block <- m, summed by column and normalised.
  DRHMM_INLINE void keep(const Value* m, Index k) {
    Value* const out = rows_ + k * n_columns();
    op_.by_column(m, out);
    Value sum = out[0];
    for (Index c = 1; c < n_columns(); ++c) sum += out[c];
    if constexpr (kLanesHere == 1) {
      for (Index c = 0; c < n_columns(); ++c) out[c] = out[c] / sum;
    } else {
      const Value factor = 1.0 / sum;
      for (Index c = 0; c < n_columns(); ++c) out[c] *= factor;
    }
  }

  // Writes the rows that belong to the stretches. The next block lies in kDirection; its memory is prefetched.
  template <int kDirection>
  void write(Index first, Index count) {
    const Index n = n_columns();
    if constexpr (kLanesHere == 1) {
      const Stretch& own = group_[0];
      const Index begin = std::clamp<Index>(own.begin - own.from - first, 0, count);
      const Index end = std::clamp<Index>(own.end - own.from - first, 0, count);
      double* const rows = posteriors_ + (own.from + first) * n;
      for (Index place = begin * n; place < end * n; ++place) rows[place] = double(rows_[place]);
    } else {
      double* rows[kLanesHere];
      bool whole = count == kBlock;
      for (int l = 0; l < kLanesHere; ++l) {
        const Stretch& own = group_[l];
        rows[l] = posteriors_ + (own.from + first) * n;
        whole = whole && own.from + first >= own.begin && own.from + first + count <= own.end;
      }
      if (whole) {
        for (Index place = 0; place < kBlock * n; place += kLanesHere) {
          transpose(rows_ + place);
          for (int l = 0; l < kLanesHere; ++l) {
            if (is_streamed_) {
              stream(rows_[place + l], rows[l] + place);
            } else {
              prefetch_write(rows[l] + place + kDirection * kBlock * n);
              store<double>(rows_[place + l], rows[l] + place);
            }
          }
        }
        return;
      }
      for (int l = 0; l < kLanesHere; ++l) {
        const Stretch& own = group_[l];
        const Index begin = std::clamp<Index>(own.begin - own.from - first, 0, count) * n;
        const Index end = std::clamp<Index>(own.end - own.from - first, 0, count) * n;
        for (Index place = begin; place < end; ++place) rows[l][place] = lane(rows_[place], l);
      }
    }
  }

 private:
  static constexpr int kLanesHere = kWidth<Value>;

  bool posteriors_are_streamed() const {
    if (posteriors_ == nullptr) return false;
    for (int l = 0; l < kLanesHere; ++l) {
      const double* const begin = posteriors_ + group_[l].from * op_.n_columns();
      if (!is_past_caches(begin, group_.n_frames_in_all() * op_.n_columns())) return false;
    }
    return true;
  }

  Index n_columns() const { return Operator::kStates > 0 ? Operator::kStates : op_.n_columns(); }

  const Operator& op_;
  const StretchGroup& group_;
  double* posteriors_;  // (N, C)
  Value* rows_;         // (kBlock, C)
  bool is_streamed_;
};

}  // namespace drhmm
