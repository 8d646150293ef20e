// Least squares on the context of a time step: estimates of p(x = i | the past).
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>
#include <vector>

#include "drhmm/features/context.hpp"
#include "drhmm/system/lanes.hpp"

namespace drhmm {

// q_i = intercept_i + sum_f coefficient_fi clip((feature_f - center_f) / spread_f, -10, 10)
class ContextRidge {
 public:
  // center, spread (F), intercept (S), coefficients (F, S)
  ContextRidge(const Vector& center, const Vector& spread, Vector intercept, const RowMatrix& coefficients)
      : size_(center.size()),
        n_statistics_(size_ - Context::kKernels),
        intercept_(std::move(intercept)),
        offsets_(intercept_) {
    for (Index first = 0; first < intercept_.size(); first += kStates) {
      const Index n = std::min(kStates, intercept_.size() - first);
      Group group{first, n, {}, {}, std::vector<Kernel>(static_cast<std::size_t>(Context::kKernels))};
      const RowMatrix own = coefficients.middleCols(first, n);
      group.features = packed(center, spread, own, size_);
      group.statistics = packed(center, spread, own, n_statistics_);
      for (Index f = n_statistics_; f < size_; ++f) {
        Kernel& kernel = group.kernels[static_cast<std::size_t>(f - n_statistics_)];
        kernel.low = (center[f] - kMost * spread[f]) / Context::kShare;
        kernel.high = (center[f] + kMost * spread[f]) / Context::kShare;
        kernel.is_limited = kernel.low > 0 || kernel.high < Context::kPooled;
        for (Index i = 0; i < n; ++i) {
          const double slope = own(f, i) / spread[f];
          kernel.slopes[i] = slope * Context::kShare;
          offsets_[first + i] -= slope * center[f];
        }
      }
      groups_.push_back(std::move(group));
    }
  }

  Index n_states() const { return intercept_.size(); }
  Index work_per_frame() const { return size_ * (2 + n_states()); }

  // out (S) <- the estimates of one time step from its features (F).
  void estimates_of_one(const double* features, double* out) const {
    for (const Group& group : groups_) add_parts(group, group.features, size_, features, intercept_, out);
  }

  // out (n, S) <- the estimates of n time steps from their statistics (n, stride) and the counts of the context.
  void estimates(const double* statistics, Index stride, const std::uint8_t* counts, Index n, double* out) const {
    for (const Group& group : groups_) {
      for (Index k = 0; k < n; ++k) {
        add_parts(group, group.statistics, n_statistics_, statistics + k * stride, offsets_, out + k * n_states());
      }
      with_size(group.size, [&](auto size) { add_kernels<size()>(group, counts, n, out); });
    }
  }

 private:
  static constexpr Index kWidth = kLanes<double>;                 // numbers of a register
  static constexpr Index kStates = kRegisterBytes == 64 ? 8 : 4;  // states that go together, as registers allow
  static constexpr double kMost = 10;

  // The part of a kernel in the estimates of a group: slope_i clip(count, low, high), but for that of the center.
  struct Kernel {
    double low, high;
    double slopes[kStates];
    bool is_limited;
  };

  // States first..first+size-1; the parts of all features, and of all but the kernels.
  struct Group {
    Index first, size;
    std::vector<double> features, statistics;  // (parts, 2 + size, kWidth): center, 1 / spread and coefficients
    std::vector<Kernel> kernels;               // (kKernels)
  };

  // Calls use(size) with a constant.
  template <Index most = kStates, class Use>
  static void with_size(Index size, const Use& use) {
    if constexpr (most > 1) {
      if (size < most) return with_size<most - 1>(size, use);
    }
    use(std::integral_constant<Index, most>());
  }

  static Index n_parts(Index size) { return (size + kWidth - 1) / kWidth; }
  // The last part ends with the features. It overlaps the one before it, with coefficients of 0.
  static Index begin_of(Index part, Index size) { return std::max(std::min(part * kWidth, size - kWidth), Index{0}); }

  static std::vector<double> packed(const Vector& center, const Vector& spread, const RowMatrix& coefficients,
                                    Index size) {
    const Index height = 2 + coefficients.cols();
    std::vector<double> result(static_cast<std::size_t>(n_parts(size) * height * kWidth), 0.0);
    for (Index f = 0; f < size; ++f) {
      const Index part = f / kWidth;
      double* const own = result.data() + part * height * kWidth + f - begin_of(part, size);
      own[0] = center[f];
      own[kWidth] = 1 / spread[f];
      for (Index i = 0; i < coefficients.cols(); ++i) own[(2 + i) * kWidth] = coefficients(f, i);
    }
    return result;
  }

  // out (S) <- offsets and the part of the first features in the estimates of a group.
  static void add_parts(const Group& group, const std::vector<double>& parts, Index size, const double* features,
                        const Vector& offsets, double* out) {
    std::array<double, kWidth> few{};
    if (size < kWidth) features = std::copy_n(features, size, few.begin()) - size;
    with_size(group.size, [&](auto n_states) {
      const Lanes<double> most = all(kMost), least = all(-kMost);
      std::array<Lanes<double>, n_states()> totals{};
      const double* part = parts.data();
      for (Index number = 0; number < n_parts(size); ++number) {
        Lanes<double> x = load<double>(features + begin_of(number, size));
        x = (x - load<double>(part)) * load<double>(part + kWidth);
        x = x > most ? most : x;
        x = x < least ? least : x;
        part += 2 * kWidth;
        for (auto& total : totals) {
          total += x * load<double>(part);
          part += kWidth;
        }
      }
      for (Index i = 0; i < n_states(); ++i) {
        out[group.first + i] = offsets[group.first + i] + sum_of(totals[static_cast<std::size_t>(i)]);
      }
    });
  }

  // out (n, S) += the parts of the kernels.
  template <Index size>
  void add_kernels(const Group& group, const std::uint8_t* counts, Index n, double* out) const {
    constexpr Index kSegments = Context::kSegments, kHalves = kSegments / kWidth;
    const Index steps = Context::n_steps(n), stride = Context::count_stride(n);
    for (Index s = 0; s < steps; ++s) {
      Lanes<double> totals[kHalves][size] = {};
      const std::uint8_t* count = counts + s * kSegments;
      for (const Kernel& kernel : group.kernels) {
        for (Index half = 0; half < kHalves; ++half) {
          Lanes<double> x = load_bytes(count + half * kWidth);
          if (kernel.is_limited) {
            x = x > all(kernel.high) ? all(kernel.high) : x;
            x = x < all(kernel.low) ? all(kernel.low) : x;
          }
          for (Index i = 0; i < size; ++i) totals[half][i] += x * kernel.slopes[i];
        }
        count += stride;
      }
      for (Index lane = 0; lane < kSegments && lane * steps + s < n; ++lane) {
        double* const own = out + (lane * steps + s) * n_states() + group.first;
        for (Index i = 0; i < size; ++i) own[i] += lane_of(totals[lane / kWidth][i], lane % kWidth);
      }
    }
  }

  static double sum_of(const Lanes<double>& values) {
    double sum = 0;
    for (Index lane = 0; lane < kWidth; ++lane) sum += lane_of(values, lane);
    return sum;
  }

  Index size_, n_statistics_;
  Vector intercept_, offsets_;  // (S); offsets for counts of 0
  std::vector<Group> groups_;
};

}  // namespace drhmm
