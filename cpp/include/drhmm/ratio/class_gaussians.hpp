// Log densities of one Gaussian per state.
#pragma once

#include <algorithm>
#include <vector>

#include "drhmm/system/lanes.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// log N_i(y) = log_scale_i - |W_i y - o_i|^2 / 2 up to a constant, with W_i lower triangular: Sigma_i^-1 = W_i^T W_i.
// W_i may be block diagonal with square blocks. Subtracts an origin amid the data first, so that frames far from zero
// keep their digits.
class ClassGaussians {
 public:
  // origin (D), means (S, D), whitening (S * D, B): the rows of W_0, W_1, ... within their blocks, of which the lower
  // triangles are read; log_scales (S). B is D, or a smaller multiple of kRows.
  ClassGaussians(Vector origin, const ConstRows& means, const ConstRows& whitening, Vector log_scales);

  Index n_states() const { return log_scales_.size(); }
  static constexpr Index kRows = 4;  // rows of W that share the loads of a frame

  Index work_per_frame() const { return n_states() * packed_size_; }
  Index scratch_size(Index n) const { return n == 1 ? frame_size_ : (frame_size_ + kRows) * kTile; }

  void log_densities(const double* frames,      // (n, D)
                     Index n, double* scratch,  // (scratch_size(n))
                     double* out) const {       // (n, S)
    if (n == 1) return log_densities_of_one(frames, scratch, out);
    std::fill_n(scratch, scratch_size(n), 0.0);
    for (Index first = 0; first < n; first += kTile) {
      const Index count = std::min(kTile, n - first);
      for (Index l = 0; l < count; ++l) {
        const double* const frame = frames + (first + l) * frame_size_;
        for (Index j = 0; j < frame_size_; ++j) scratch[j * kTile + l] = from_origin(frame[j], j);
      }
      for (Index i = 0; i < n_states(); ++i) {
        double norms[kTile];
        squared_norms(scratch, i, norms);
        for (Index l = 0; l < count; ++l) out[(first + l) * n_states() + i] = log_scales_[i] - norms[l] / 2;
      }
    }
  }

 private:
  static constexpr Index kTile = 2 * kLanes<double>;  // frames evaluated together
  static constexpr double kFarthest = 1e100;

  void log_densities_of_one(const double* frame,  // (D)
                            double* scratch,      // (D)
                            double* out) const {  // (S)
    for (Index j = 0; j < frame_size_; ++j) scratch[j] = from_origin(frame[j], j);
    for (Index i = 0; i < n_states(); i += 4) {
      switch (n_states() - i) {
        case 1:
          of_states<1>(scratch, i, out);
          break;
        case 2:
          of_states<2>(scratch, i, out);
          break;
        case 3:
          of_states<3>(scratch, i, out);
          break;
        default:
          of_states<4>(scratch, i, out);
      }
    }
  }

  // The log densities of one frame (D) less the origin in n states from `first` on. Their sums hide each other's
  // latency.
  template <int n>
  void of_states(const double* frame, Index first, double* out) const {
    using Values = Eigen::Array<double, kRows, 1>;
    using Loaded = Eigen::Map<const Values>;
    const double *weights = packed_.data() + first * packed_size_, *offsets = offsets_.data() + first * height();
    Values norms[n];
    for (Values& norm : norms) norm.setZero();
    for (Index group = 0; group < n_groups_; ++group, offsets += kRows) {
      Values z[n];
      for (int k = 0; k < n; ++k) z[k] = -Loaded(offsets + k * height());
      for (Index e = begin_of(group * kRows); e < width(group); ++e, weights += kRows) {
        for (int k = 0; k < n; ++k) z[k] += Loaded(weights + k * packed_size_) * frame[e];
      }
      for (int k = 0; k < n; ++k) norms[k] += z[k].square();
    }
    for (int k = 0; k < n; ++k) out[first + k] = log_scales_[first + k] - norms[k].sum() / 2;
  }

  // norms (kTile) <- |W_i y - o_i|^2 of kTile frames.
  void squared_norms(const double* tile /* (D, kTile) */, Index i, double* norms) const {
    using Value = Lanes<double>;
    Value norm[2] = {};
    const double* weights = packed_.data() + i * packed_size_;
    for (Index group = 0; group < n_groups_; ++group) {
      const double* const offset = offsets_.data() + (i * n_groups_ + group) * kRows;
      Value z[kRows * 2];
      for (int r = 0; r < kRows; ++r) z[2 * r] = z[2 * r + 1] = all<double>(-offset[r]);
      for (Index e = begin_of(group * kRows); e < width(group); ++e, weights += kRows) {
        const Value y[2] = {load(tile + e * kTile), load(tile + e * kTile + kLanes<double>)};
        for (int r = 0; r < kRows; ++r) {
          z[2 * r] += weights[r] * y[0];
          z[2 * r + 1] += weights[r] * y[1];
        }
      }
      for (int r = 0; r < kRows; ++r) {
        norm[0] += z[2 * r] * z[2 * r];
        norm[1] += z[2 * r + 1] * z[2 * r + 1];
      }
    }
    store<double>(norm[0], norms);
    store<double>(norm[1], norms + kLanes<double>);
  }

  // Clips distances to kFarthest, so that no square overflows.
  double from_origin(double value, Index column) const {
    return std::min(std::max(value - origin_[column], -kFarthest), kFarthest);
  }

  // The first column in the block of a column.
  Index begin_of(Index column) const { return column / block_ * block_; }
  Index height() const { return n_groups_ * kRows; }
  // The columns of W that a group of rows needs: from the first of its block up to the diagonal of its last row.
  Index width(Index group) const { return std::min((group + 1) * kRows, frame_size_); }
  Vector origin_;  // (D)
  Index frame_size_, block_, n_groups_;
  Index packed_size_;            // numbers of packed_ per state
  Vector log_scales_;            // (S)
  std::vector<double> offsets_;  // (S, groups * kRows): o_i
  std::vector<double> packed_;   // per state and group of rows: their entries of each column
};

}  // namespace drhmm
