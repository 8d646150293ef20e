// Least squares on the context of a time step: estimates of p(x = i | the past).
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "drhmm/features/context.hpp"
#include "drhmm/system/lanes.hpp"

namespace drhmm {

// q_i = intercept_i + sum_f coefficient_fi clip((feature_f - center_f) / spread_f, -10, 10)
class ContextRidge {
 public:
  // center, spread (F), intercept (S), coefficients (F, S)
  ContextRidge(const Vector& center, const Vector& spread, Vector intercept, const ConstRows& coefficients)
      : size_(center.size()),
        n_statistics_(size_ - Context::kKernels),
        n_groups_((intercept.size() + kStates - 1) / kStates),
        intercept_(std::move(intercept)),
        offsets_(Vector::Zero(intercept_.size())),
        parts_(packed(center, spread, coefficients, size_)),
        statistics_(packed(center, spread, coefficients, n_statistics_)),
        kernels_(static_cast<std::size_t>(n_groups_ * Context::kKernels)) {
    for (Index group = 0; group < n_groups_; ++group) {
      for (Index k = 0; k < Context::kKernels; ++k) {
        const Index f = n_statistics_ + k;
        Kernel& kernel = kernels_[static_cast<std::size_t>(group * Context::kKernels + k)];
        kernel.low = (center[f] - kMost * spread[f]) / Context::kShare;
        kernel.high = (center[f] + kMost * spread[f]) / Context::kShare;
        kernel.is_limited = kernel.low > 0 || kernel.high < Context::kPooled;
        for (Index i = 0; i < n_of(group); ++i) {
          const double slope = coefficients(f, group * kStates + i) / spread[f];
          kernel.slopes[i] = slope * Context::kShare;
          offsets_[group * kStates + i] -= slope * center[f];
        }
      }
    }
  }

  Index work_per_frame() const { return static_cast<Index>(parts_.size()); }

  // out (S) <- the estimates of one time step from its features (F).
  void estimates_of_one(const double* features, double* out) const { estimate(parts_, features, size_, out); }

  // out (n, S) <- the estimates of n time steps from their statistics (n, stride) and the counts of the context.
  void estimates(const double* statistics, Index stride, const std::uint8_t* counts, Index n, double* out) const {
    for (Index k = 0; k < n; ++k) {
      estimate(statistics_, statistics + k * stride, n_statistics_, out + k * intercept_.size());
    }
    for (Index group = 0; group < n_groups_; ++group) {
      switch (n_of(group)) {
        case 1:
          add_kernels<1>(group, counts, n, out);
          break;
        case 2:
          add_kernels<2>(group, counts, n, out);
          break;
        case 3:
          add_kernels<3>(group, counts, n, out);
          break;
        default:
          add_kernels<kStates>(group, counts, n, out);
      }
    }
  }

 private:
  static constexpr Index kWidth = kLanes<double>, kStates = 4;  // numbers of a register, states that go together
  static constexpr double kMost = 10;

  // The part of a kernel in the estimates of a group: slope_ki clip(count_k, low, high), less that of the center.
  struct Kernel {
    double low, high;
    double slopes[kStates];
    bool is_limited;
  };

  Index n_of(Index group) const { return std::min(kStates, intercept_.size() - group * kStates); }
  static Index n_parts(Index size) { return (size + kWidth - 1) / kWidth; }

  // out (n, S) += the parts of the kernels in the estimates of a group of n_states.
  template <Index n_states>
  void add_kernels(Index group, const std::uint8_t* counts, Index n, double* out) const {
    constexpr Index kSegments = Context::kSegments, kHalves = kSegments / kWidth;
    const Index steps = Context::n_steps(n), stride = Context::count_stride(n), all_states = intercept_.size();
    const Kernel* const kernels = kernels_.data() + group * Context::kKernels;
    for (Index s = 0; s < steps; ++s) {
      Lanes<double> totals[kHalves][n_states] = {};
      const std::uint8_t* count = counts + s * kSegments;
      for (Index k = 0; k < Context::kKernels; ++k, count += stride) {
        const Kernel& kernel = kernels[k];
        for (Index half = 0; half < kHalves; ++half) {
          Lanes<double> x = load_bytes(count + half * kWidth);
          if (kernel.is_limited) {
            x = x > all(kernel.high) ? all(kernel.high) : x;
            x = x < all(kernel.low) ? all(kernel.low) : x;
          }
          for (Index i = 0; i < n_states; ++i) totals[half][i] += x * kernel.slopes[i];
        }
      }
      for (Index lane = 0; lane < kSegments && lane * steps + s < n; ++lane) {
        double* const own = out + (lane * steps + s) * all_states + group * kStates;
        for (Index i = 0; i < n_states; ++i) {
          own[i] += offsets_[group * kStates + i] + lane_of(totals[lane / kWidth][i], lane % kWidth);
        }
      }
    }
  }

  // (groups, parts, 2 + kStates, kWidth): center, 1 / spread and coefficients of the first features, with zeros
  std::vector<double> packed(const Vector& center, const Vector& spread, const ConstRows& coefficients,
                             Index size) const {
    std::vector<double> result(static_cast<std::size_t>(n_groups_ * n_parts(size) * (2 + kStates) * kWidth), 0.0);
    for (Index group = 0; group < n_groups_; ++group) {
      for (Index f = 0; f < size; ++f) {
        double* const part = result.data() + (group * n_parts(size) + f / kWidth) * (2 + kStates) * kWidth + f % kWidth;
        part[0] = center[f];
        part[kWidth] = 1 / spread[f];
        for (Index i = 0; i < n_of(group); ++i) part[(2 + i) * kWidth] = coefficients(f, group * kStates + i);
      }
    }
    return result;
  }

  // out (S) <- the intercept and the part of the first features.
  void estimate(const std::vector<double>& parts, const double* features, Index size, double* out) const {
    const Lanes<double> most = all(kMost), least = all(-kMost);
    const Index last = n_parts(size) - 1;
    const double* part = parts.data();
    std::array<double, kWidth> rest{};
    std::copy(features + last * kWidth, features + size, rest.begin());
    for (Index group = 0; group < n_groups_; ++group) {
      std::array<Lanes<double>, kStates> totals{};
      for (Index number = 0; number <= last; ++number) {
        Lanes<double> x = load<double>(number == last ? rest.data() : features + number * kWidth);
        x = (x - load<double>(part)) * load<double>(part + kWidth);
        x = x > most ? most : x;
        x = x < least ? least : x;
        part += 2 * kWidth;
        for (auto& total : totals) {
          total += x * load<double>(part);
          part += kWidth;
        }
      }
      for (Index i = 0; i < n_of(group); ++i) {
        out[group * kStates + i] = intercept_[group * kStates + i] + sum_of(totals[static_cast<std::size_t>(i)]);
      }
    }
  }

  static double sum_of(const Lanes<double>& values) {
    double sum = 0;
    for (Index lane = 0; lane < kWidth; ++lane) sum += lane_of(values, lane);
    return sum;
  }

  Index size_, n_statistics_, n_groups_;
  Vector intercept_;                        // (S)
  Vector offsets_;                          // (S) of the kernels, for counts of 0
  std::vector<double> parts_, statistics_;  // of all features, and of all but the kernels
  std::vector<Kernel> kernels_;             // (groups, kKernels)
};

}  // namespace drhmm
