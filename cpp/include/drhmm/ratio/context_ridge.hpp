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
        n_parts_((size_ + kWidth - 1) / kWidth),
        n_groups_((intercept.size() + kStates - 1) / kStates),
        intercept_(std::move(intercept)),
        packed_(static_cast<std::size_t>(n_groups_ * n_parts_ * (2 + kStates) * kWidth), 0.0) {
    for (Index group = 0; group < n_groups_; ++group) {
      for (Index f = 0; f < size_; ++f) {
        double* const part = packed_.data() + (group * n_parts_ + f / kWidth) * (2 + kStates) * kWidth + f % kWidth;
        part[0] = center[f];
        part[kWidth] = 1 / spread[f];
        for (Index i = 0; i < std::min(kStates, intercept_.size() - group * kStates); ++i) {
          part[(2 + i) * kWidth] = coefficients(f, group * kStates + i);
        }
      }
    }
  }

  Index work_per_frame() const { return packed_.size(); }

  // out (S) <- the estimates of one time step from its features (F).
  void estimates_of_one(const double* features, double* out) const {
    const Lanes<double> most = all(10.0), least = all(-10.0);
    const double* part = packed_.data();
    std::array<double, kWidth> rest{};
    std::copy(features + (n_parts_ - 1) * kWidth, features + size_, rest.begin());
    for (Index group = 0; group < n_groups_; ++group) {
      std::array<Lanes<double>, kStates> totals{};
      for (Index number = 0; number < n_parts_; ++number) {
        Lanes<double> x = load<double>(number + 1 == n_parts_ ? rest.data() : features + number * kWidth);
        x = (x - load<double>(part)) * load<double>(part + kWidth);
        x = x > most ? most : x;
        x = x < least ? least : x;
        part += 2 * kWidth;
        for (auto& total : totals) {
          total += x * load<double>(part);
          part += kWidth;
        }
      }
      const Index first = group * kStates;
      for (Index i = first; i < std::min(first + kStates, intercept_.size()); ++i) {
        out[i] = intercept_[i] + sum_of(totals[static_cast<std::size_t>(i - first)]);
      }
    }
  }

 private:
  static constexpr Index kWidth = kLanes<double>, kStates = 4;  // numbers of a register, states that go together

  static double sum_of(const Lanes<double>& values) {
    double sum = 0;
    for (Index lane = 0; lane < kWidth; ++lane) sum += lane_of(values, lane);
    return sum;
  }

  Index size_, n_parts_, n_groups_;
  Vector intercept_;            // (S)
  std::vector<double> packed_;  // (groups, parts, 2 + kStates, kWidth): center, 1 / spread and coefficients, with zeros
};

}  // namespace drhmm
