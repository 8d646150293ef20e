// Filtering and smoothing of mixing chains with many states, a few stretches of frames at a time: every number of the
// transition matrix that is fetched serves all of them, and none waits for its own last result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "drhmm/recursion/level.hpp"
#include "drhmm/recursion/mixing.hpp"
#include "drhmm/recursion/stretch.hpp"

namespace drhmm {

// The posteriors of a group of kWidth stretches, and what they saw at their edges; P and exact as in PaddedRows.
template <int P, bool exact>
class RowRecursion {
 public:
  static constexpr Index kWidth = 4;

  // log_ratios, posteriors (N, S)
  RowRecursion(const MixingChain<P>& chain, Index n_states, const StretchGroup& group, Edges* edges,
               const double* log_ratios, double* posteriors)
      : rows_(n_states),
        chain_(chain),
        forward_(chain.forward),
        backward_(chain.backward),
        group_(group),
        edges_(edges),
        log_ratios_(log_ratios),
        posteriors_(posteriors),
        is_streamed_(is_past_caches(posteriors, group.n_frames_in_all() * n_states)) {}

  // Both return false, with nothing of use written, if a row is neither ordinary evidence nor missing.
  bool filter() { return forward<true>(); }

  // The forward messages wait where the posteriors will be, so that nothing has to be warmed up but the stretches.
  bool smooth(Index) { return forward<false>() && backward(); }

 private:
  static constexpr Index kBlock = P >= 64 ? 4 : 8;  // frames that are weighed at a time
  static constexpr Index kRegisters = P / kLanes<double>;
  static constexpr Index kLineOfCache = 8;  // numbers
  static constexpr Index kRescaled = 8;     // frames after which messages are brought back to their level
  // Of messages; they lose 2^20 in a frame at most (2^30 in a first one), and backward ones 2^20 more.
  static constexpr int kLevel = 96 + 20 * (kRescaled + 1);

  struct Messages {
    alignas(64) double value[kWidth][P];

    void fill(double number) { std::fill(value[0], value[0] + kWidth * P, number); }
  };
  struct Weights {
    alignas(64) double value[kWidth][kBlock][P];
  };

  // weights <- those of the frames at steps first..first+kBlock-1; equal where a stretch is over, 0 where rows are
  // padded. The way back is told to the processor, which sees by itself only what is read upwards.
  template <bool is_on_the_way_back>
  bool weigh(Index first, Weights& weights) const {
    for (Index lane = 0; lane < kWidth; ++lane) {
      const Stretch& own = group_[lane];
      const Index count = std::clamp<Index>(own.n_steps() - first, 0, kBlock);
      double* const target = weights.value[lane][0];
      if constexpr (is_on_the_way_back) {
        const double* const next = log_ratios_ + (own.from + first - kBlock) * n_states();
        for (Index place = 0; place < kBlock * n_states(); place += kLineOfCache) prefetch_read(next + place);
      }
      if (!rows_.weigh(log_ratios_ + (own.from + first) * n_states(), count, target)) return false;
      for (Index k = 0; k < kBlock; ++k) {
        if (k >= count) std::fill(target + k * P, target + k * P + n_states(), std::ldexp(1.0, kWeightShift));
        std::fill(target + k * P + n_states(), target + (k + 1) * P, 0.0);
      }
    }
    return true;
  }

  // A matrix whose columns are cut into panels, which stand one after the other as they are used.
  class Panels {
   public:
    explicit Panels(const double (&matrix)[P][P]) : value_(P * P) {
      double* to = value_.data();
      for (int first = 0; first < P; first += kPanel) {
        for (int i = 0; i < P; ++i, to += kPanel) std::copy_n(matrix[i] + first, kPanel, to);
      }
    }

    // out_kj = sum_i in_ki matrix_ij
    void multiply(const Messages& in, Messages& out) const {
      const double* from = value_.data();
      for (int first = 0; first < P; first += kPanel) {
        Lanes<double> sums[kWidth][kTogether] = {};
        for (int i = 0; i < P; ++i, from += kPanel) {
          Lanes<double> row[kTogether];
          for (int r = 0; r < kTogether; ++r) row[r] = load(from + r * kLanes<double>);
          for (Index k = 0; k < kWidth; ++k) {
            for (int r = 0; r < kTogether; ++r) sums[k][r] += in.value[k][i] * row[r];
          }
        }
        for (Index k = 0; k < kWidth; ++k) {
          for (int r = 0; r < kTogether; ++r) store<double>(sums[k][r], out.value[k] + first + r * kLanes<double>);
        }
      }
    }

   private:
    static constexpr int kTogether = std::min<int>(kRegisters, 4);
    static constexpr int kPanel = kTogether * kLanes<double>;

    Vector value_;  // not on the stack, of which threads may have little
  };

  static double sum(const double* row) {
    Lanes<double> total = load(row);
    for (int r = 1; r < kRegisters; ++r) total += load(row + r * kLanes<double>);
    double result = lane_of(total, 0);
    for (int lane = 1; lane < kLanes<double>; ++lane) result += lane_of(total, lane);
    return result;
  }

  // What a message is multiplied by beside its weights, which are too large by 2^kWeightShift.
  static double factor(const double* message, bool is_rescaled) {
    if (!is_rescaled) return std::ldexp(1.0, -kWeightShift);
    return factor_to_level(sum(message), kLevel - kWeightShift);
  }

  // out <- row * factor .* weights, where the factor is not for the weights, which are small
  static void multiply(const double* row, const double* weights, double factor, double* out) {
    for (int r = 0; r < P; r += kLanes<double>) store<double>(load(row + r) * factor * load(weights + r), out + r);
  }

  // Row t of the posteriors <- values * factor, past the caches on the way forward where the answer is large: it is not
  // read again before the way back, if at all.
  template <bool is_on_the_way_forward>
  void write(const double* values, double factor, Index t) {
    double* const row = posteriors_ + t * n_states();
    if constexpr (exact && is_on_the_way_forward) {
      if (is_streamed_) {
        for (int r = 0; r < P; r += kLanes<double>) stream(load(values + r) * factor, row + r);
        return;
      }
    }
    for (Index i = 0; i < n_states(); ++i) row[i] = values[i] * factor;
  }

  static double level() { return std::ldexp(1.0, kLevel); }

  bool belongs(Index t, Index lane) const { return t >= group_[lane].begin && t < group_[lane].end; }

  // f(t) = w(t) .* A^T f(t-1), written for the frames of the stretches, as probabilities if they are filtered.
  template <bool is_filtered>
  bool forward() {
    Messages last, next;
    Weights weights;
    last.fill(level());
    for (Index step = 0; step < group_.n_steps(); ++step) {
      if (step % kBlock == 0 && !weigh<false>(step, weights)) return false;
      if (group_.cut(step) != 0) show(step, last, &Edges::before_begin, &Edges::before_end);
      forward_.multiply(last, next);
      for (Index lane = 0; lane < kWidth; ++lane) {
        double* const own = next.value[lane];
        const bool is_starting = (group_.starting(step) >> lane & 1) != 0;
        if (is_starting) std::copy_n(chain_.start, P, own);
        multiply(own, weights.value[lane][step % kBlock], factor(own, is_starting || step % kRescaled == 0),
                 last.value[lane]);
        const Index t = group_[lane].from + step;
        if (is_starting && !chain_.can_start_anywhere) check_start(lane, t, last.value[lane]);
        if (belongs(t, lane)) write<true>(last.value[lane], is_filtered ? 1 / sum(last.value[lane]) : 1.0, t);
      }
    }
    return true;
  }

  // A sequence that does not start where its first frame says is left to others.
  void check_start(Index lane, Index t, double* message) {
    if (!starts_elsewhere(sum(message) * std::ldexp(1.0, -kLevel))) return;
    edges_[lane].disagreements.push_back(t);
    std::fill_n(message, n_states(), level());
  }

  // b(t-1) = A (w(t) .* b(t)); posteriors f(t) .* b(t), normalised.
  bool backward() {
    Messages back, weighted;
    alignas(64) double posterior[P] = {};
    Weights weights;
    back.fill(level());
    const Index n_steps = group_.n_steps();
    for (Index step = n_steps - 1; step >= 0; --step) {
      if ((step == n_steps - 1 || step % kBlock == kBlock - 1) && !weigh<true>(step / kBlock * kBlock, weights))
        return false;
      for (Index lane = 0; lane < kWidth; ++lane) {
        const double* const own = back.value[lane];
        const Index t = group_[lane].from + step;
        if (belongs(t, lane)) {
          double* const row = posteriors_ + t * n_states();
          for (Index place = 0; place < n_states(); place += kLineOfCache) {
            prefetch_write(row - 2 * n_states() + place);
          }
          std::copy_n(row, n_states(), posterior);
          multiply(posterior, own, 1.0, posterior);
          write<false>(posterior, 1 / sum(posterior), t);
        }
        multiply(own, weights.value[lane][step % kBlock], factor(own, step % kRescaled == 0), weighted.value[lane]);
      }
      backward_.multiply(weighted, back);
      for (Index lane = 0; lane < kWidth; ++lane) {
        if ((group_.starting(step) >> lane & 1) != 0) std::fill_n(back.value[lane], P, level());
      }
      if (group_.cut(step) != 0) show(step, back, &Edges::back_to_begin, &Edges::back_to_end);
    }
    return true;
  }

  void show(Index step, const Messages& messages, std::vector<double> Edges::* at_begin,
            std::vector<double> Edges::* at_end) {
    group_.show(step, edges_, at_begin, at_end, [&](Index lane) {
      return std::vector<double>(messages.value[lane], messages.value[lane] + n_states());
    });
  }

  Index n_states() const { return rows_.n_states(); }

  PaddedRows<P, exact> rows_;
  const MixingChain<P>& chain_;
  Panels forward_, backward_;
  const StretchGroup& group_;
  Edges* edges_;
  const double* log_ratios_;
  double* posteriors_;
  bool is_streamed_;
};

}  // namespace drhmm
