#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>

#include "drhmm/ratio/cross_validation.hpp"
#include "drhmm/ratio/gram.hpp"
#include "drhmm/ratio/pooled_ratio.hpp"
#include "drhmm/ratio/solve.hpp"
#include "drhmm/system/parallel.hpp"

using namespace drhmm;

namespace {

// A pool of all three members on frames of two columns.
PooledRatio pool(const ConstRows& centers, Index n_states) {
  const Matrix theta = Matrix::Random(centers.rows(), n_states);
  RowMatrix edges(2, AdditiveTables::kEdges);
  for (Index k = 0; k < edges.cols(); ++k) edges.col(k).setConstant(0.2 * static_cast<double>(k) - 0.8);
  const RowMatrix means = RowMatrix::Random(n_states, 2), whitening = RowMatrix::Random(2 * n_states, 2);
  const Vector prior = Vector::Constant(n_states, 1.0 / static_cast<double>(n_states));
  return {{Vector::Zero(2), Vector::Ones(2), 1},
          prior,
          0.06,
          0.02,
          Vector::Random(n_states),
          PoolMember<KernelEstimate>{{{centers, 0.5, theta}, {centers, 0.5, theta}}, 1.0},
          PoolMember<AdditiveTables>{
              {Vector::Constant(2, -1), Vector::Ones(2), ConstRows(edges.data(), 2, edges.cols()), prior,
               RowMatrix::Random(2, n_states), RowMatrix::Random(2 * AdditiveTables::kBins, n_states)},
              0.5},
          PoolMember<ClassGaussians>{{Vector::Zero(2), ConstRows(means.data(), n_states, 2),
                                      ConstRows(whitening.data(), 2 * n_states, 2), Vector::Zero(n_states)},
                                     0.25}};
}

struct Training {
  RowMatrix frames = RowMatrix::Random(1300, 2);
  RowMatrix targets = RowMatrix::Zero(1300, 3);
  Vector weights = Vector::Ones(1300) + 0.5 * Vector::Random(1300);
  RowMatrix centers = frames.topRows(20);

  Training() {
    for (Index t = 0; t < 1300; ++t) targets(t, t % 3) = 1;
  }

  ConstRows rows(const RowMatrix& matrix, Index first, Index count) const {
    return {matrix.data() + first * matrix.cols(), count, matrix.cols()};
  }

  void add(GramStatistics& statistics, Index first, Index count) const {
    statistics.add(SquaredExponential(rows(centers, 0, 20), 0.5), rows(frames, first, count),
                   rows(targets, first, count), Eigen::Map<const Vector>(weights.data() + first, count));
  }
};

}  // namespace

TEST_CASE("statistics of parts merge into those of the whole") {
  const Training training;
  GramStatistics whole(20, 3), left(20, 3), right(20, 3);
  training.add(whole, 0, 1300);
  training.add(left, 0, 500);
  training.add(right, 500, 800);
  left.merge(right);
  CHECK(left.gram().isApprox(whole.gram(), 1e-12));
  CHECK(left.moment().isApprox(whole.moment(), 1e-12));
  CHECK(left.mass().isApprox(whole.mass(), 1e-12));
}

TEST_CASE("theta solves the regularised equations") {
  const Training training;
  GramStatistics statistics(20, 3);
  training.add(statistics, 0, 1300);
  const Matrix theta = RegularizedGram(statistics.gram(), 2.0).solve(statistics.moment());
  const Matrix left = statistics.gram() * theta + 2.0 * theta;
  CHECK(left.isApprox(statistics.moment(), 1e-10));
}

TEST_CASE("one reduction solves the regularised system of every rho") {
  const Training training;
  GramStatistics statistics(20, 3);
  training.add(statistics, 0, 1300);
  const Matrix thetas = ReducedGram(statistics.lower_gram(), statistics.moment()).solve({0.1, 2.0, 300.0});
  CHECK(thetas.middleCols(0, 3).isApprox(RegularizedGram(statistics.gram(), 0.1).solve(statistics.moment()), 1e-9));
  CHECK(thetas.middleCols(3, 3).isApprox(RegularizedGram(statistics.gram(), 2.0).solve(statistics.moment()), 1e-9));
  CHECK(thetas.middleCols(6, 3).isApprox(RegularizedGram(statistics.gram(), 300.0).solve(statistics.moment()), 1e-9));
}

TEST_CASE("one centre is a reduction, too") {
  const Matrix theta = ReducedGram(Matrix::Constant(1, 1, 3.0), Matrix::Constant(1, 2, 8.0)).solve({1.0});
  CHECK(theta.isApprox(Matrix::Constant(1, 2, 2.0), 1e-15));
}

TEST_CASE("a matrix that is not positive definite is refused") {
  CHECK_THROWS_AS(RegularizedGram(-Matrix::Identity(3, 3), 0.5), std::invalid_argument);
  CHECK_THROWS_AS(ReducedGram(-Matrix::Identity(3, 3), Matrix::Ones(3, 1)).solve({0.5}), std::invalid_argument);
}

TEST_CASE("held-out loss and estimates equal those of explicit predictions") {
  const Training training;
  std::vector<double> loss(2), estimates(1300 * 3);
  const SquaredExponential features(training.rows(training.centers, 0, 20), 0.5);
  CrossValidation(training.rows(training.frames, 0, 1300), training.rows(training.targets, 0, 1300),
                  Eigen::Map<const Vector>(training.weights.data(), 1300), {500, 800}, {1e-3})
      .run(training.rows(training.centers, 0, 20), {0.5}, 2, loss.data(), estimates.data());
  GramStatistics second(20, 3);
  training.add(second, 500, 800);
  const double rho = 1e-3 * training.weights.tail(800).sum();
  const Matrix theta = RegularizedGram(second.gram(), rho).solve(second.moment());
  RowMatrix phi;
  features.evaluate(training.frames.topRows(500), phi);
  const RowMatrix expected = phi * theta;
  const Vector squares = (expected - training.targets.topRows(500)).rowwise().squaredNorm();
  CHECK(loss[0] == doctest::Approx(squares.dot(training.weights.head(500))).epsilon(1e-9));
  CHECK(ConstRows(estimates.data(), 500, 3).isApprox(expected, 1e-9));
}

TEST_CASE("a single frame has the log ratios that it has among others") {
  const Training training;
  const PooledRatio ratio = pool(training.rows(training.centers, 0, 20), 3);
  RowMatrix batch(300, 3);
  ratio.log_ratios(training.rows(training.frames, 0, 300), {300}, 1, false, Rows(batch.data(), 300, 3));
  Vector scratch(ratio.scratch_size(1));
  const char missing = 0;
  Eigen::RowVectorXd alone(3);
  for (Index k = 0; k < 300; ++k) {
    ratio.frame_log_ratios(training.frames.row(k).data(), &missing, nullptr, 1, scratch.data(), alone.data(), 3);
    CHECK(alone.isApprox(batch.row(k), 1e-12));
  }
}

TEST_CASE("log ratios are the same on any number of threads") {
  const Training training;
  const PooledRatio ratio = pool(training.rows(training.centers, 0, 20), 3);
  RowMatrix one(1300, 3), four(1300, 3);
  ratio.log_ratios(training.rows(training.frames, 0, 1300), {1300}, 1, false, Rows(one.data(), 1300, 3));
  ratio.log_ratios(training.rows(training.frames, 0, 1300), {1300}, 4, false, Rows(four.data(), 1300, 3));
  CHECK(one == four);
}

TEST_CASE("parallel_for runs every task once") {
  std::vector<std::atomic<int>> runs(1000);
  parallel_for(1000, 4, [&](Index i) { ++runs[static_cast<std::size_t>(i)]; });
  for (const std::atomic<int>& count : runs) CHECK(count == 1);
}

TEST_CASE("an exception in a task reaches the caller") {
  CHECK_THROWS_AS(parallel_for(100, 4,
                               [](Index i) {
                                 if (i == 50) throw std::runtime_error("task 50");
                               }),
                  std::runtime_error);
}
