// Names shared by every stage.
#pragma once

#include <Eigen/Core>

namespace drhmm {

using Index = Eigen::Index;
using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;
// numpy's layout: one frame per row, rows contiguous.
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstRows = Eigen::Map<const RowMatrix>;
using Rows = Eigen::Map<RowMatrix>;

}  // namespace drhmm
