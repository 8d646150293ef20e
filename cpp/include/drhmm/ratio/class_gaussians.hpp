// Log densities of one Gaussian per state.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "drhmm/lanes.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// log N_i(y) = log_scale_i - |W_i y - o_i|^2 / 2 up to a constant, with W_i lower triangular: Sigma_i^-1 = W_i^T W_i.
// Subtracts an origin amid the data first, so that frames far from zero keep their digits.
class ClassGaussians {
 public:
  static constexpr Index kTile = 2 * kLanes<double>;  // frames evaluated together

  // origin (D), means (S, D), whitening (S * D, D): W_0, W_1, ..., only the lower triangles are read;
  // log_scales (S)
  ClassGaussians(Vector origin, const ConstRows& means, const ConstRows& whitening, Vector log_scales)
      : origin_(std::move(origin)),
        frame_size_(means.cols()),
        n_groups_((means.cols() + kRows - 1) / kRows),
        log_scales_(std::move(log_scales)),
        offsets_(static_cast<std::size_t>(means.rows() * n_groups_ * kRows), 0.0),
        packed_(static_cast<std::size_t>(means.rows() * packed_size()), 0.0),
        columns_(static_cast<std::size_t>(means.rows() * frame_size_ * n_groups_ * kRows), 0.0) {
    const Index d = frame_size_, height = n_groups_ * kRows;
    for (Index i = 0; i < means.rows(); ++i) {
      const Matrix w = whitening.middleRows(i * d, d).triangularView<Eigen::Lower>();
      Eigen::Map<Vector>(offsets_.data() + i * height, d) = w * (means.row(i).transpose() - origin_);
      double* packed = packed_.data() + i * packed_size();
      for (Index group = 0; group < n_groups_; ++group) {
        for (Index e = 0; e < width(group); ++e) {
          for (Index r = 0; r < kRows; ++r, ++packed) {
            if (group * kRows + r < d) *packed = w(group * kRows + r, e);
          }
        }
      }
      for (Index e = 0; e < d; ++e) {
        Eigen::Map<Vector>(columns_.data() + (i * d + e) * height, d) = w.col(e);
      }
    }
  }

  Index n_states() const { return log_scales_.size(); }
  // The approximate number of multiplications per frame.
  Index work_per_frame() const { return n_states() * packed_size(); }
  // The size of the scratch memory of log_densities_of_one, in numbers.
  std::size_t scratch_size() const { return static_cast<std::size_t>(n_groups_ * kRows); }

  // out (S) <- log densities of one frame (D).
  void log_densities_of_one(const double* frame, double* scratch, double* out) const {
    const Index d = frame_size_, height = n_groups_ * kRows;
    for (Index i = 0; i < n_states(); ++i) {
      const double* const offset = offsets_.data() + i * height;
      for (Index k = 0; k < height; ++k) scratch[k] = -offset[k];
      for (Index e = 0; e < d; ++e) {
        const double* const column = columns_.data() + (i * d + e) * height;
        const double value = from_origin(frame[e], e);
        for (Index k = e / kRows * kRows; k < height; ++k) scratch[k] += column[k] * value;
      }
      out[i] = log_scales_[i] - Eigen::Map<const Vector>(scratch, height).squaredNorm() / 2;
    }
  }

  // out (n, S) <- log densities of frames (n, D).
  void log_densities(const RowMatrix& frames, RowMatrix& out) const {
    using Value = Lanes<double>;
    std::vector<double> tile(static_cast<std::size_t>((frame_size_ + kRows) * kTile), 0.0);
    for (Index first = 0; first < frames.rows(); first += kTile) {
      const Index count = std::min(kTile, frames.rows() - first);
      for (Index l = 0; l < count; ++l) {
        for (Index j = 0; j < frame_size_; ++j) {
          tile[static_cast<std::size_t>(j * kTile + l)] = from_origin(frames(first + l, j), j);
        }
      }
      for (Index i = 0; i < n_states(); ++i) {
        Value norm[2] = {};
        const double* weights = packed_.data() + i * packed_size();
        for (Index group = 0; group < n_groups_; ++group) {
          const double* const offset = offsets_.data() + (i * n_groups_ + group) * kRows;
          Value z[kRows * 2];
          for (int r = 0; r < kRows; ++r) z[2 * r] = z[2 * r + 1] = all<double>(-offset[r]);
          for (Index e = 0; e < width(group); ++e, weights += kRows) {
            const Value y[2] = {load(tile.data() + e * kTile), load(tile.data() + e * kTile + kLanes<double>)};
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
        double norms[kTile];
        store<double>(norm[0], norms);
        store<double>(norm[1], norms + kLanes<double>);
        for (Index l = 0; l < count; ++l) out(first + l, i) = log_scales_[i] - norms[l] / 2;
      }
    }
  }

 private:
  static constexpr Index kRows = 4;  // rows of W that share the loads of a frame
  static constexpr double kFarthest = 1e100;

  // Larger distances are cut to this one, so that no square overflows.
  double from_origin(double value, Index column) const {
    return std::min(std::max(value - origin_[column], -kFarthest), kFarthest);
  }

  // The columns of W that a group of rows needs: up to the diagonal of its last row.
  Index width(Index group) const { return std::min((group + 1) * kRows, frame_size_); }
  Index packed_size() const {
    Index size = 0;
    for (Index group = 0; group < n_groups_; ++group) size += kRows * width(group);
    return size;
  }

  Vector origin_;  // (D)
  Index frame_size_;
  Index n_groups_;
  Vector log_scales_;            // (S)
  std::vector<double> offsets_;  // (S, groups * kRows): o_i
  std::vector<double> packed_;   // per state and group of rows: their entries of each column; for tiles of frames
  std::vector<double> columns_;  // (S, D, groups * kRows): the columns of W_i; for single frames
};

}  // namespace drhmm
