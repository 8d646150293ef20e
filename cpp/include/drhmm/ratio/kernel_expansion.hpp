// Sums of kernels, sum_b theta_bs phi_b(y). Distance, exponential and projection stay in registers: the features of a
// frame are never stored.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "drhmm/system/exponential.hpp"
#include "drhmm/system/lanes.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// phi_b(y) = exp(-|y - c_b|^2 / (2 sigma^2)) = 2^(p_b . y + o_b - g |y|^2) with g = log2(e) / (2 sigma^2), p_b = 2 g
// c_b and o_b = -g |c_b|^2. Subtracts the mean of the centres from both, so that data far from zero keep their
// digits.
template <class Real>
class KernelExpansion {
 public:
  // centers (B, D), theta (B, S)
  KernelExpansion(const ConstRows& centers, double sigma, const Eigen::Ref<const Matrix>& theta);

  Index frame_size() const { return frame_size_; }
  Index n_states() const { return n_states_; }
  Index n_centers() const { return n_centers_; }

  Index scratch_size(Index n) const {
    const Index of_one = frame_size_ + n_registers_ * kLanes<Real>;
    return n < kWorthATile ? of_one : std::max(of_one, (frame_size_ + n_states_) * kTile);
  }

  void sums(const double* frames,    // (n, D)
            Index n, Real* scratch,  // (scratch_size(n))
            double* out) const {     // (n, S)
    Index first = 0;
    for (; n - first >= kWorthATile; first += kTile) {
      const Index count = std::min(kTile, n - first);
      Real* const results = scratch + frame_size_ * kTile;
      std::fill(scratch, results, Real(0));
      for (Index l = 0; l < count; ++l) {
        const double* const frame = frames + (first + l) * frame_size_;
        for (Index j = 0; j < frame_size_; ++j) scratch[j * kTile + l] = static_cast<Real>(frame[j] - origin_[j]);
      }
      evaluate(scratch, results);
      for (Index l = 0; l < count; ++l) {
        for (Index s = 0; s < n_states_; ++s) {
          out[(first + l) * n_states_ + s] = static_cast<double>(results[s * kTile + l]);
        }
      }
    }
    for (; first < n; ++first) {
      for (Index j = 0; j < frame_size_; ++j) {
        scratch[j] = static_cast<Real>(frames[first * frame_size_ + j] - origin_[j]);
      }
      evaluate_one(scratch, scratch + frame_size_);
      for (Index s = 0; s < n_states_; ++s) out[first * n_states_ + s] = projected(scratch + frame_size_, s);
    }
  }

 private:
  // Frames evaluated together: two registers. Fewer than half as many are evaluated one by one.
  static constexpr Index kTile = 2 * kLanes<Real>;
  static constexpr Index kWorthATile = (kTile + 1) / 2;

  // sums (S, kTile) <- those of kTile frames, frames (D, kTile) less the origin: lanes are frames.
  void evaluate(const Real* frames, Real* sums) const {
    using Value = Lanes<Real>;
    constexpr int kRegisters = 2;
    Value norm[kRegisters] = {};
    for (Index j = 0; j < frame_size_; ++j) {
      for (int r = 0; r < kRegisters; ++r) {
        const Value y = load(frames + j * kTile + r * kLanes<Real>);
        norm[r] += y * y;
      }
    }
    for (int r = 0; r < kRegisters; ++r) norm[r] *= static_cast<Real>(gamma_);
    for (Index k = 0; k < n_states_ * kTile; ++k) sums[k] = 0;
    const Real* center = centers_.data();
    const Real* weight = theta_.data();
    for (Index group = 0; group < n_groups_; ++group) {
      Value x[kGroup * kRegisters];
      for (int c = 0; c < kGroup; ++c) {
        for (int r = 0; r < kRegisters; ++r) x[c * kRegisters + r] = center[c] - norm[r];
      }
      center += kGroup;
      for (Index j = 0; j < frame_size_; ++j, center += kGroup) {
        Value y[kRegisters];
        for (int r = 0; r < kRegisters; ++r) y[r] = load(frames + j * kTile + r * kLanes<Real>);
        for (int c = 0; c < kGroup; ++c) {
          for (int r = 0; r < kRegisters; ++r) x[c * kRegisters + r] += center[c] * y[r];
        }
      }
      for (int k = 0; k < kGroup * kRegisters; k += kAtATime) exp2_of_negatives<kAtATime, Real>(x + k);
      for (Index s = 0; s < n_states_; ++s, weight += kGroup) {
        for (int r = 0; r < kRegisters; ++r) {
          Real* const target = sums + s * kTile + r * kLanes<Real>;
          Value sum = load(target);
          for (int c = 0; c < kGroup; ++c) sum += weight[c] * x[c * kRegisters + r];
          store<Real>(sum, target);
        }
      }
    }
  }

  // features (B) <- phi of one frame less the origin: lanes are centres.
  void evaluate_one(const Real* frame, Real* features) const {
    using Value = Lanes<Real>;
    constexpr Index kWidth = kLanes<Real>;
    Real norm = 0;
    for (Index j = 0; j < frame_size_; ++j) norm += frame[j] * frame[j];
    norm *= static_cast<Real>(gamma_);
    const Real* column = columns_.data();
    for (Index first = 0; first < n_registers_; first += kTogether) {
      Value x[kTogether];
      for (int r = 0; r < kTogether; ++r, column += kWidth) x[r] = load(column) - norm;
      for (Index j = 0; j < frame_size_; ++j) {
        for (int r = 0; r < kTogether; ++r, column += kWidth) x[r] += frame[j] * load(column);
      }
      for (int r = 0; r < kTogether; r += kAtATime) exp2_of_negatives<kAtATime, Real>(x + r);
      for (int r = 0; r < kTogether; ++r) store<Real>(x[r], features + (first + r) * kWidth);
    }
  }

  // sum_b theta_bs phi_b
  double projected(const Real* features, Index s) const {
    using Value = Lanes<Real>;
    constexpr Index kWidth = kLanes<Real>;
    const Real* const weights = rows_.data() + s * n_registers_ * kWidth;
    Value sum[2] = {};
    for (Index r = 0; r < n_registers_; r += 2) {
      sum[0] += load(weights + r * kWidth) * load(features + r * kWidth);
      sum[1] += load(weights + (r + 1) * kWidth) * load(features + (r + 1) * kWidth);
    }
    Real entries[kWidth];
    store<Real>(sum[0] + sum[1], entries);
    double result = 0;
    for (Index r = 0; r < kWidth; ++r) result += static_cast<double>(entries[r]);
    return result;
  }

  static constexpr double kLog2E = 1.4426950408889634;
  static constexpr int kGroup = kRegisterBytes == 64 ? 6 : 4;    // centres that share the loads of a frame
  static constexpr int kAtATime = kRegisterBytes == 64 ? 4 : 1;  // exponentials: as many as the registers hold
  static constexpr int kTogether = 4;                            // registers of centres that share a number of a frame
  static constexpr double kNowhere = -1e30;  // the exponent of a centre that pads a group: 2^kNowhere = 0

  Index frame_size_;
  Index n_states_;
  Index n_centers_;
  Index n_groups_;
  Index n_registers_;
  double gamma_;
  Eigen::RowVectorXd origin_;  // (D)
  std::vector<Real> centers_;  // per group: o_b of its centres, then p_bj of its centres for each j
  std::vector<Real> theta_;    // per group and state: theta_bs of its centres
  std::vector<Real> columns_;  // the same in groups of kTogether registers; for single frames
  std::vector<Real> rows_;     // theta_bs of all centres for each s; for single frames
};

}  // namespace drhmm
