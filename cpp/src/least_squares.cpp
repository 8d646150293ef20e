// Learning least-squares ratios: features, sums over frames, solutions for many rho, and held-out losses.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "drhmm/chain/powers.hpp"
#include "drhmm/ratio/cross_validation.hpp"
#include "drhmm/ratio/solve.hpp"
#include "drhmm/system/exponential.hpp"
#include "drhmm/system/interruption.hpp"
#include "drhmm/system/parallel.hpp"

namespace drhmm {

namespace {

constexpr Index kBlock = 512;  // frames whose features are computed at a time

[[noreturn]] void refuse_gram() {
  throw std::invalid_argument("the Gram matrix plus rho is not positive definite: choose a larger rho");
}

}  // namespace

RowMatrix product(const RowMatrix& a, const RowMatrix& b) { return a * b; }

SquaredExponential::SquaredExponential(const ConstRows& centers, double sigma)
    : gamma_(0.5 / (sigma * sigma)), origin_(centers.colwise().mean()) {
  const RowMatrix shifted = centers.rowwise() - origin_;
  projection_ = 2 * gamma_ * shifted.transpose();
  offset_ = gamma_ * shifted.rowwise().squaredNorm().transpose();
}

void SquaredExponential::evaluate(const Eigen::Ref<const RowMatrix>& frames, RowMatrix& features) const {
  const RowMatrix shifted = frames.rowwise() - origin_;
  const Vector norms = gamma_ * shifted.rowwise().squaredNorm();
  features.noalias() = shifted * projection_;
  features.rowwise() -= offset_;
  features.colwise() -= norms;
  // Rounding can make a distance negative. A frame beyond the range of double has infinite distance and features of
  // exactly 0: whether every class estimates 0 must not depend on the last digits of an underflow.
  features = features.cwiseMin(0.0);
  exponentials(features.data(), features.size());
}

void GramStatistics::add(const SquaredExponential& features, const ConstRows& frames, const ConstRows& targets,
                         const Eigen::Map<const Vector>& weights) {
  RowMatrix phi;
  for (Index first = 0; first < frames.rows(); first += kBlock) {
    check_interruption();
    const Index count = std::min(kBlock, frames.rows() - first);
    features.evaluate(frames.middleRows(first, count), phi);
    const Vector root = weights.segment(first, count).cwiseSqrt();
    phi = root.asDiagonal() * phi;
    const RowMatrix weighted = root.asDiagonal() * targets.middleRows(first, count);
    gram_.selfadjointView<Eigen::Lower>().rankUpdate(phi.transpose());
    moment_.noalias() += phi.transpose() * weighted;
    mass_.noalias() += weighted.transpose() * root;
  }
}

void GramStatistics::merge(const GramStatistics& other) {
  if (other.n_centers() != n_centers() || other.n_classes() != n_classes()) {
    throw std::invalid_argument("statistics of different sizes cannot be merged");
  }
  gram_ += other.gram_;
  moment_ += other.moment_;
  mass_ += other.mass_;
}

Matrix GramStatistics::gram() const { return gram_.selfadjointView<Eigen::Lower>(); }

Matrix feature_moment(const SquaredExponential& features, const ConstRows& frames, const ConstRows& targets) {
  Matrix moment = Matrix::Zero(features.n_centers(), targets.cols());
  RowMatrix phi;
  for (Index first = 0; first < frames.rows(); first += kBlock) {
    check_interruption();
    const Index count = std::min(kBlock, frames.rows() - first);
    features.evaluate(frames.middleRows(first, count), phi);
    const RowMatrix own = targets.middleRows(first, count);
    moment.noalias() += phi.transpose() * own;
  }
  return moment;
}

RegularizedGram::RegularizedGram(const Eigen::Ref<const Matrix>& gram, double rho) {
  Matrix regularized = gram;
  regularized.diagonal().array() += rho;
  factor_.compute(regularized);
  if (factor_.info() != Eigen::Success) refuse_gram();
}

Matrix RegularizedGram::solve(const Eigen::Ref<const Matrix>& moment) const { return factor_.solve(moment); }

ReducedGram::ReducedGram(const Matrix& gram, const Matrix& moment)
    : packed_(gram),
      scales_(std::max<Index>(gram.rows() - 1, 0)),
      diagonal_(gram.rows()),
      below_(scales_.size()),
      moment_(moment) {
  reduce();
  for (Index k = 0; k < scales_.size(); ++k) reflect(k, moment_);
}

// For column k, v and h are such that H keeps one entry below the diagonal. The rest becomes H G H = G - v w^T - w v^T,
// where w = p - (h/2) (p . v) v and p = h G v. Interruptible: it takes seconds for thousands of centres.
void ReducedGram::reduce() {
  const Index n = packed_.rows();
  Vector update(n);
  for (Index k = 0; k + 1 < n; ++k) {
    check_interruption();
    const Index rest = n - 1 - k;
    diagonal_[k] = packed_(k, k);
    auto v = packed_.col(k).tail(rest);
    const double first = v[0], others = rest > 1 ? v.tail(rest - 1).squaredNorm() : 0.0;
    if (!(others > std::numeric_limits<double>::min())) {  // nothing to do
      below_[k] = first;
      scales_[k] = 0;
      continue;
    }
    below_[k] = (first < 0 ? 1 : -1) * std::sqrt(first * first + others);
    scales_[k] = (below_[k] - first) / below_[k];
    v.tail(rest - 1) /= first - below_[k];
    v[0] = 1;
    auto w = update.head(rest);
    w.setZero();
    for (Index j = 0; j < rest; ++j) {
      const auto column = packed_.col(k + 1 + j).tail(rest - 1 - j);
      const Index left = column.size();
      w[j] += packed_(k + 1 + j, k + 1 + j) * v[j] + column.dot(v.tail(left));
      w.tail(left) += v[j] * column;
    }
    w *= scales_[k];
    w -= scales_[k] / 2 * w.dot(v) * v;
    for (Index j = 0; j < rest; ++j) {
      packed_.col(k + 1 + j).tail(rest - j) -= v[j] * w.tail(rest - j) + w[j] * v.tail(rest - j);
    }
  }
  if (n > 0) diagonal_[n - 1] = packed_(n - 1, n - 1);
}

// values (B, m) <- H_k values
void ReducedGram::reflect(Index k, Matrix& values) const {
  const Index rest = values.rows() - 1 - k;
  const auto v = packed_.col(k).tail(rest);
  for (Index j = 0; j < values.cols() && scales_[k] != 0; ++j) {
    auto column = values.col(j).tail(rest);
    column -= scales_[k] * v.dot(column) * v;
  }
}

Matrix ReducedGram::solve(const std::vector<double>& rhos) const {
  const Index n = diagonal_.size(), n_classes = moment_.cols();
  Matrix theta(n, n_classes * static_cast<Index>(rhos.size()));
  Vector pivot(n), factor(n);
  for (std::size_t r = 0; r < rhos.size(); ++r) {
    // T + rho I = L D L^T
    for (Index i = 0; i < n; ++i) {
      pivot[i] = diagonal_[i] + rhos[r];
      if (i > 0) {
        factor[i] = below_[i - 1] / pivot[i - 1];
        pivot[i] -= factor[i] * below_[i - 1];
      }
      if (!(pivot[i] > 0)) refuse_gram();
    }
    auto own = theta.middleCols(static_cast<Index>(r) * n_classes, n_classes);
    own = moment_;
    for (Index i = 1; i < n; ++i) own.row(i) -= factor[i] * own.row(i - 1);
    own.row(n - 1) /= pivot[n - 1];
    for (Index i = n - 2; i >= 0; --i) own.row(i) = own.row(i) / pivot[i] - factor[i + 1] * own.row(i + 1);
  }
  for (Index k = scales_.size() - 1; k >= 0; --k) reflect(k, theta);
  return theta;
}

void CrossValidation::run(const ConstRows& centers, const std::vector<double>& sigmas, int n_threads, double* loss,
                          double* estimates) const {
  const Index n_tasks = static_cast<Index>(sigmas.size()) * n_folds();
  std::vector<SquaredExponential> features;
  for (const double sigma : sigmas) features.emplace_back(centers, sigma);
  std::vector<GramStatistics> statistics(static_cast<std::size_t>(n_tasks),
                                         GramStatistics(centers.rows(), targets_.cols()));
  parallel_for(n_tasks, n_threads, [&](Index task) {
    const auto f = static_cast<std::size_t>(task % n_folds());
    statistics[static_cast<std::size_t>(task)].add(features[static_cast<std::size_t>(task / n_folds())],
                                                   rows(frames_, f), rows(targets_, f), weights(f));
  });
  parallel_for(n_tasks, n_threads, [&](Index task) {
    const Index s = task / n_folds();
    evaluate(features[static_cast<std::size_t>(s)], statistics.data() + s * n_folds(), task % n_folds(),
             loss + s * n_rhos() * n_folds(),
             estimates == nullptr ? nullptr : estimates + s * n_rhos() * targets_.size());
  });
}

// Loss (rhos, folds) and estimates (rhos, N, S) of one fold.
void CrossValidation::evaluate(const SquaredExponential& features, const GramStatistics* folds, Index fold,
                               double* loss, double* estimates) const {
  constexpr Index kBlock = 128;
  const auto f = static_cast<std::size_t>(fold);
  const Index n_classes = targets_.cols();
  // Adds up the other folds instead of subtracting this one from all: nothing cancels, whatever the weights.
  GramStatistics training(features.n_centers(), n_classes);
  double training_weight = 0;
  for (std::size_t other = 0; other < sizes_.size(); ++other) {
    if (other == f) continue;
    training.merge(folds[other]);
    training_weight += weights(other).sum();
  }
  std::vector<double> rhos(rhos_);
  for (double& rho : rhos) rho *= training_weight;
  const Matrix thetas = ReducedGram(training.lower_gram(), training.moment()).solve(rhos);
  // sum |Theta^T phi - m|^2 = tr Theta^T G Theta - 2 tr Theta^T H + sum |m|^2 over the held-out frames
  Matrix residual = folds[f].gram() * thetas;
  residual -= 2 * folds[f].moment().replicate(1, n_rhos());
  const double squares = rows(targets_, f).rowwise().squaredNorm().dot(weights(f));
  for (Index r = 0; r < n_rhos(); ++r) {
    const auto own = thetas.middleCols(r * n_classes, n_classes);
    loss[r * n_folds() + fold] = own.cwiseProduct(residual.middleCols(r * n_classes, n_classes)).sum() + squares;
  }
  if (estimates == nullptr) return;
  RowMatrix phi;
  for (Index first = 0; first < sizes_[f]; first += kBlock) {
    check_interruption();
    const Index count = std::min(kBlock, sizes_[f] - first);
    features.evaluate(rows(frames_, f).middleRows(first, count), phi);
    const RowMatrix values = phi * thetas;
    for (Index r = 0; r < n_rhos(); ++r) {
      Rows out(estimates + (r * frames_.rows() + begins_[f] + first) * n_classes, count, n_classes);
      out = values.middleCols(r * n_classes, n_classes);
    }
  }
}

}  // namespace drhmm
