#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "drhmm/chain/chain.hpp"
#include "drhmm/chain/powers.hpp"
#include "drhmm/recursion/live_sequence.hpp"

using namespace drhmm;

namespace {

constexpr Way kWays[] = {Way::best, Way::alone, Way::lanes, Way::scaled};

struct Problem {
  RowMatrix log_ratios;
  RowMatrix transmat;
  Vector startprob;

  Evidence evidence() const { return {log_ratios.data(), log_ratios.cols()}; }
  Chain chain(Way way = Way::best) const {
    return {ConstRows(transmat.data(), transmat.rows(), transmat.cols()),
            Eigen::Map<const Vector>(startprob.data(), startprob.size()), way};
  }
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

RowMatrix inferred(const Problem& problem, Way way, Pass pass = Pass::smooth, RowMatrix* counts = nullptr) {
  RowMatrix out(problem.log_ratios.rows(), problem.log_ratios.cols());
  Answers answers{out.data()};
  if (counts != nullptr) answers.counts = counts->data();
  REQUIRE(problem.chain(way).infer(pass, problem.evidence(), {out.rows()}, 1, answers).status.ok());
  return out;
}

}  // namespace

TEST_CASE("smoothing and expected transitions are sums over all paths, by every way") {
  const Problem problem = random_problem(6, 3, 3.0);
  RowMatrix posteriors;
  Matrix expected;
  enumerate(problem, posteriors, expected);
  for (const Way way : kWays) {
    RowMatrix counts = RowMatrix::Zero(3, 3);
    CHECK(inferred(problem, way, Pass::smooth, &counts).isApprox(posteriors, 1e-13));
    CHECK(counts.isApprox(expected, 1e-13));
  }
}

TEST_CASE("every way gives the same answers, for every number of states, with and without zeros") {
  for (const Index n_states : {2, 3, 4, 5, 8, 9, 16, 17, 30}) {
    for (const bool has_zero : {false, true}) {
      Problem problem = random_problem(700, n_states, 5.0);
      if (has_zero) {
        problem.transmat(0, n_states - 1) = 0;
        problem.transmat.row(0) /= problem.transmat.row(0).sum();
      }
      problem.log_ratios.row(300).setConstant(std::numeric_limits<double>::quiet_NaN());
      for (const Pass pass : {Pass::filter, Pass::smooth}) {
        const RowMatrix expected = inferred(problem, Way::scaled, pass);
        for (const Way way : kWays) CHECK((inferred(problem, way, pass) - expected).cwiseAbs().maxCoeff() < 1e-12);
      }
    }
  }
}

TEST_CASE("the log likelihood is that of all paths, by every way") {
  const Problem problem = random_problem(300, 3, 2.0);
  double expected = 0;
  const Answers wanted{nullptr, nullptr, &expected};
  REQUIRE(problem.chain(Way::scaled).infer(Pass::filter, problem.evidence(), {300}, 1, wanted).status.ok());
  for (const Way way : kWays) {
    for (const Pass pass : {Pass::filter, Pass::smooth}) {
      double found = 0;
      RowMatrix out(300, 3);
      REQUIRE(problem.chain(way).infer(pass, problem.evidence(), {300}, 1, {out.data(), nullptr, &found}).status.ok());
      CHECK(found == doctest::Approx(expected).epsilon(1e-12));
    }
  }
}

TEST_CASE("fixed lag of the whole sequence is smoothing") {
  const Problem problem = random_problem(30, 3, 3.0);
  RowMatrix lagged(30, 3);
  REQUIRE(problem.chain().fixed_lag(problem.evidence(), {30}, 29, 1, lagged.data()).status.ok());
  CHECK(lagged.isApprox(inferred(problem, Way::best), 1e-12));
}

TEST_CASE("a state that double would lose is not lost") {
  Problem problem;
  problem.log_ratios.resize(4, 2);
  problem.log_ratios << 700, 0, 700, 0, -750, 0, -650, 0;
  problem.transmat = RowMatrix::Identity(2, 2);
  problem.startprob = Vector::Constant(2, 0.5);
  for (const Way way : kWays) CHECK(inferred(problem, way, Pass::filter)(3, 0) == doctest::Approx(0.5));
}

TEST_CASE("impossible data names the frame, by every way") {
  Problem problem = random_problem(5, 2, 1.0);
  problem.log_ratios.row(3).setConstant(-HUGE_VAL);
  RowMatrix out(5, 2);
  for (const Way way : kWays) {
    const SequenceStatus status = problem.chain(way).infer(Pass::smooth, problem.evidence(), {2, 3}, 1, {out.data()});
    CHECK(status.status.outcome == Outcome::impossible);
    CHECK(status.status.frame == 1);
    CHECK(status.sequence == 1);
  }
}

TEST_CASE("a row with some NaN names the column") {
  Problem problem = random_problem(5, 3, 1.0);
  problem.log_ratios(2, 1) = std::numeric_limits<double>::quiet_NaN();
  std::int64_t path[5];
  const Status status = problem.chain().best_path(problem.evidence(), {5}, 1, path, nullptr).status;
  CHECK(status.outcome == Outcome::partial_nan);
  CHECK(status.frame == 2);
  CHECK(status.column == 1);
}

TEST_CASE("stages of one each are the plain chain") {
  const Problem problem = random_problem(200, 3, 2.0);
  StageRules rules;
  rules.leaving = problem.transmat;
  rules.leaving.diagonal().setZero();
  rules.leave = rules.leaving.rowwise().sum();
  for (Index i = 0; i < 3; ++i) rules.leaving.row(i) /= rules.leave[i];
  rules.size = {1, 1, 1};
  rules.stay = problem.transmat.diagonal();
  rules.skip = Vector::Zero(3);
  for (const Way way : kWays) {
    RowMatrix out(200, 3);
    const Chain chain(rules, Eigen::Map<const Vector>(problem.startprob.data(), 3), way);
    REQUIRE(chain.infer(Pass::smooth, problem.evidence(), {200}, 1, {out.data()}).status.ok());
    CHECK(out.isApprox(inferred(problem, Way::scaled), 1e-12));
  }
}

TEST_CASE("squares of a chain stay stochastic") {
  const Problem problem = random_problem(1, 3, 1.0);
  const Powers<Scaled> powers(problem.transmat, true);
  for (const auto& square : powers.reach(std::int64_t{1} << 52).of) {
    for (Index i = 0; i < 3; ++i) CHECK(std::abs(double(square->matrix.row(i).sum()) - 1) < 1e-15);
  }
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
