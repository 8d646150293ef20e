#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "drhmm/recursion/filter.hpp"
#include "drhmm/recursion/fixed_lag.hpp"
#include "drhmm/recursion/sequences.hpp"
#include "drhmm/recursion/smooth.hpp"
#include "drhmm/recursion/viterbi.hpp"

using namespace drhmm;

namespace {

struct Problem {
  RowMatrix log_ratios;
  RowMatrix transmat;
  Vector startprob;

  ConstRows rows() const { return {log_ratios.data(), log_ratios.rows(), log_ratios.cols()}; }
  ConstRows a() const { return {transmat.data(), transmat.rows(), transmat.cols()}; }
  Eigen::Map<const Vector> pi() const { return {startprob.data(), startprob.size()}; }
};

Problem random_problem(Index n_frames, Index n_states, double spread) {
  Problem problem;
  problem.log_ratios = spread * RowMatrix::Random(n_frames, n_states);
  problem.transmat = RowMatrix::Random(n_states, n_states).cwiseAbs();
  for (Index i = 0; i < n_states; ++i) problem.transmat.row(i) /= problem.transmat.row(i).sum();
  problem.startprob = Vector::Constant(n_states, 1.0 / static_cast<double>(n_states));
  return problem;
}

// Smoothed posteriors and transition counts from all S^T paths.
void enumerate(const Problem& problem, RowMatrix& posteriors, Matrix& counts) {
  const Index n = problem.log_ratios.rows(), s = problem.log_ratios.cols();
  posteriors.setZero(n, s);
  counts.setZero(s, s);
  std::vector<Index> path(static_cast<std::size_t>(n), 0);
  double total = 0;
  while (true) {
    double weight = problem.startprob[path[0]] * std::exp(problem.log_ratios(0, path[0]));
    for (std::size_t t = 1; t < path.size(); ++t) {
      weight *= problem.transmat(path[t - 1], path[t]) * std::exp(problem.log_ratios(static_cast<Index>(t), path[t]));
    }
    total += weight;
    for (std::size_t t = 0; t < path.size(); ++t) {
      posteriors(static_cast<Index>(t), path[t]) += weight;
      if (t > 0) counts(path[t - 1], path[t]) += weight;
    }
    std::size_t digit = 0;
    while (digit < path.size() && ++path[digit] == s) path[digit++] = 0;
    if (digit == path.size()) break;
  }
  posteriors /= total;
  counts /= total;
}

template <class Number>
RowMatrix smoothed(const Problem& problem, Matrix* counts = nullptr) {
  RowMatrix out(problem.log_ratios.rows(), problem.log_ratios.cols());
  const Status status = smooth(problem.rows(), Chain<Number>(problem.a(), problem.pi()),
                               Rows(out.data(), out.rows(), out.cols()), counts);
  REQUIRE(status.ok());
  return out;
}

}  // namespace

TEST_CASE_TEMPLATE("smoothing and expected transitions are sums over all paths", Number, double, Scaled) {
  const Problem problem = random_problem(6, 3, 3.0);
  RowMatrix posteriors;
  Matrix expected, counts = Matrix::Zero(3, 3);
  enumerate(problem, posteriors, expected);
  CHECK(smoothed<Number>(problem, &counts).isApprox(posteriors, 1e-13));
  CHECK(counts.isApprox(expected, 1e-13));
}

TEST_CASE("double and Scaled agree") {
  const Problem problem = random_problem(500, 5, 50.0);
  CHECK((smoothed<double>(problem) - smoothed<Scaled>(problem)).cwiseAbs().maxCoeff() < 1e-12);
}

TEST_CASE("fixed lag of the whole sequence is smoothing") {
  const Problem problem = random_problem(30, 3, 3.0);
  RowMatrix lagged(30, 3);
  const Chain<double> chain(problem.a(), problem.pi());
  REQUIRE(fixed_lag(problem.rows(), chain, 29, Rows(lagged.data(), 30, 3)).ok());
  CHECK(lagged.isApprox(smoothed<double>(problem), 1e-12));
}

TEST_CASE("double notices when it loses a state, and Scaled does not lose it") {
  Problem problem;
  problem.log_ratios.resize(4, 2);
  problem.log_ratios << 700, 0, 700, 0, -750, 0, -650, 0;
  problem.transmat = RowMatrix::Identity(2, 2);
  problem.startprob = Vector::Constant(2, 0.5);
  RowMatrix out(4, 2);
  const Rows rows(out.data(), 4, 2);
  CHECK(filter(problem.rows(), Chain<double>(problem.a(), problem.pi()), rows).outcome == Outcome::out_of_range);
  REQUIRE(filter(problem.rows(), Chain<Scaled>(problem.a(), problem.pi()), rows).ok());
  CHECK(out(3, 0) == doctest::Approx(0.5));
}

TEST_CASE_TEMPLATE("impossible data names the frame", Number, double, Scaled) {
  Problem problem = random_problem(5, 2, 1.0);
  problem.log_ratios.row(3).setConstant(-HUGE_VAL);
  RowMatrix out(5, 2);
  const Status status = smooth(problem.rows(), Chain<Number>(problem.a(), problem.pi()), Rows(out.data(), 5, 2));
  CHECK(status.outcome == Outcome::impossible);
  CHECK(status.frame == 3);
}

TEST_CASE("a row with some NaN names the column") {
  Problem problem = random_problem(5, 3, 1.0);
  problem.log_ratios(2, 1) = std::numeric_limits<double>::quiet_NaN();
  std::int64_t path[5];
  const Status status = viterbi(problem.rows(), LogChain(problem.a(), problem.pi()), path);
  CHECK(status.outcome == Outcome::partial_nan);
  CHECK(status.frame == 2);
  CHECK(status.column == 1);
}

TEST_CASE("for_each_sequence repeats in Scaled only what double cannot do") {
  const Problem problem = random_problem(10, 2, 1.0);
  std::vector<int> in_double(2), in_scaled(2);
  const auto none_together = [](const auto&) { return std::vector<char>(); };
  const auto recursion = [&](const auto& chain, Index, Index, Index sequence) {
    const auto k = static_cast<std::size_t>(sequence);
    constexpr bool is_scaled = std::is_same_v<decltype(chain), const Chain<Scaled>&>;
    ++(is_scaled ? in_scaled : in_double)[k];
    return Status{sequence == 1 && !is_scaled ? Outcome::out_of_range : Outcome::ok, -1, -1};
  };
  const SequenceStatus status = for_each_sequence(problem.a(), problem.pi(), {4, 6}, 1, 1, none_together, recursion);
  CHECK(status.status.ok());
  CHECK(in_double == std::vector<int>{1, 1});
  CHECK(in_scaled == std::vector<int>{0, 1});
}

TEST_CASE("for_each_sequence leaves alone what was done together") {
  const Problem problem = random_problem(10, 2, 1.0);
  std::vector<Index> worked_on;
  for_each_sequence(
      problem.a(), problem.pi(), {4, 6}, 1, 1, [](const Chain<double>&) { return std::vector<char>{1, 0}; },
      [&](const auto&, Index, Index, Index sequence) {
        worked_on.push_back(sequence);
        return Status();
      });
  CHECK(worked_on == std::vector<Index>{1});
}

TEST_CASE("Scaled keeps the digits of products, quotients, sums and exponentials") {
  const Scaled tiny = Scaled::exp(-5000.0);
  CHECK(double(tiny * Scaled::exp(5001.0)) == doctest::Approx(std::exp(1.0)).epsilon(1e-14));
  CHECK(double(Scaled(3.0) / Scaled(8.0)) == 0.375);
  CHECK(double(Scaled(3.0) + Scaled(0.25)) == 3.25);
  CHECK(double(Scaled(0.0) + tiny) == 0.0);  // below double's range, not below Scaled's
  CHECK(tiny > Scaled(0));
  CHECK(double(Scaled::exp(1.0, 1e-3)) == doctest::Approx(std::exp(1.001)).epsilon(1e-15));
  CHECK(double((tiny + tiny) / tiny) == 2.0);
}
