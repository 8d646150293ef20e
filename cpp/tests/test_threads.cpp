// Every stage with threads gives the same bits on one thread and on four, and passes ThreadSanitizer.
#include <doctest/doctest.h>

#include <future>
#include <thread>

#include "drhmm/chain/chain.hpp"
#include "drhmm/ratio/cross_validation.hpp"
#include "drhmm/recursion/live_sequence.hpp"
#include "drhmm/stream/streams.hpp"
#include "drhmm/system/processors.hpp"

using namespace drhmm;

namespace {

struct Problem {
  RowMatrix log_ratios, transmat;
  Vector startprob;

  Problem(Index n_frames, Index n_states, double spread)
      : log_ratios(spread * RowMatrix::Random(n_frames, n_states)),
        transmat(RowMatrix::Constant(n_states, n_states, 0.1 / static_cast<double>(n_states))),
        startprob(Vector::Constant(n_states, 1.0 / static_cast<double>(n_states))) {
    transmat.diagonal().array() += 0.9;
  }

  std::shared_ptr<const Chain> chain() const {
    return std::make_shared<Chain>(ConstRows(transmat.data(), transmat.rows(), transmat.cols()),
                                   Eigen::Map<const Vector>(startprob.data(), startprob.size()));
  }

  RowMatrix smoothed(const std::vector<Index>& lengths, int n_threads, const std::int64_t* dt = nullptr) const {
    return smoothed_by(*chain(), lengths, n_threads, dt);
  }
  RowMatrix smoothed_by(const Chain& one, const std::vector<Index>& lengths, int n_threads,
                        const std::int64_t* dt = nullptr) const {
    RowMatrix out(log_ratios.rows(), log_ratios.cols());
    const Evidence evidence{log_ratios.data(), log_ratios.cols(), dt};
    REQUIRE(one.infer(Pass::smooth, evidence, lengths, n_threads, {out.data()}).status.ok());
    return out;
  }
};

}  // namespace

TEST_CASE("stretches of one long sequence") {
  for (const Index n_states : {3, 16}) {
    const Problem problem(n_states == 3 ? 200000 : 70000, n_states, 3.0);
    const std::vector<Index> lengths{problem.log_ratios.rows()};
    CHECK(problem.smoothed(lengths, 1) == problem.smoothed(lengths, 4));
  }
}

TEST_CASE("many sequences, of which some are redone beyond double") {
  Problem problem(4000, 3, 3.0);
  problem.transmat << 0.9, 0.1, 0, 0, 0.9, 0.1, 0, 0, 1;
  problem.log_ratios.middleRows(1000, 500) *= 1000;
  const std::vector<Index> lengths(80, 50);
  CHECK(problem.smoothed(lengths, 1) == problem.smoothed(lengths, 4));
}

TEST_CASE("callers that share a chain share what its gaps need") {
  const Problem problem(40000, 3, 3.0);
  std::vector<std::int64_t> dt(40000, 1);
  for (std::size_t t = 5; t < dt.size(); t += 100) dt[t] = std::int64_t{1} << (t / 100 % 50);
  const RowMatrix expected = problem.smoothed({40000}, 1, dt.data());
  const auto shared = problem.chain();
  std::vector<RowMatrix> answers(4);
  std::vector<std::thread> callers;
  for (RowMatrix& answer : answers) {
    callers.emplace_back([&] { answer = problem.smoothed_by(*shared, {40000}, 1, dt.data()); });
  }
  for (std::thread& caller : callers) caller.join();
  for (const RowMatrix& answer : answers) CHECK(answer == expected);
}

TEST_CASE("callers on threads of their own do not disturb one another") {
  const Problem problem(40000, 3, 3.0);
  const std::vector<Index> lengths{40000};
  const RowMatrix expected = problem.smoothed(lengths, 1);
  std::vector<RowMatrix> answers(4);
  std::vector<std::thread> callers;
  for (RowMatrix& answer : answers) callers.emplace_back([&] { answer = problem.smoothed(lengths, 2); });
  for (std::thread& caller : callers) caller.join();
  for (const RowMatrix& answer : answers) CHECK(answer == expected);
}

TEST_CASE("steps of many streams") {
  const Problem problem(1, 3, 1.0);
  const Framing framing{Vector::Zero(2), Vector::Ones(2), 1};
  const RowMatrix centers = RowMatrix::Random(20, 2);
  const ConstRows places(centers.data(), 20, 2);
  const Matrix theta = Matrix::Random(20, 3);
  const PooledRatio ratio(framing, Vector::Constant(3, 1.0 / 3), 0.03, 0.01, Vector::Zero(3),
                          PoolMember<KernelEstimate>{{{places, 0.5, theta}, {places, 0.5, theta}}, 1.0}, {}, {});
  constexpr Index n = 1500;
  RowMatrix answers[2];
  for (const int n_threads : {1, 4}) {
    std::srand(1);
    Streams streams(framing, problem.chain(), 3, 2);
    std::vector<Index> rows;
    for (Index k = 0; k < n; ++k) rows.push_back(streams.add());
    RowMatrix out(n, 3);
    for (int t = 0; t < 5; ++t) {
      const RowMatrix samples = RowMatrix::Random(n, 2);
      const std::vector<std::int64_t> dt(n, t == 3 ? 1000 : 1);
      const RowSamples step{n, rows.data(), samples.data(), dt.data()};
      REQUIRE(streams.advance(step, ratio, n_threads, out.data()).status.ok());
    }
    answers[n_threads / 4] = out;
  }
  CHECK(answers[0] == answers[1]);
}

TEST_CASE("folds of a cross-validation") {
  const RowMatrix frames = RowMatrix::Random(600, 2), centers = frames.topRows(15);
  RowMatrix targets = RowMatrix::Zero(600, 2);
  for (Index t = 0; t < 600; ++t) targets(t, t % 2) = 1;
  const Vector weights = Vector::Ones(600);
  std::vector<double> loss[2], estimates[2];
  for (const int n_threads : {1, 4}) {
    auto& own_loss = loss[n_threads / 4];
    auto& own_estimates = estimates[n_threads / 4];
    own_loss.resize(2 * 2 * 3);
    own_estimates.resize(2 * 2 * 600 * 2);
    CrossValidation(ConstRows(frames.data(), 600, 2), ConstRows(targets.data(), 600, 2),
                    Eigen::Map<const Vector>(weights.data(), 600), {200, 200, 200}, {1e-3, 1e-1})
        .run(ConstRows(centers.data(), 15, 2), {0.3, 1.0}, n_threads, own_loss.data(), own_estimates.data());
  }
  CHECK(loss[0] == loss[1]);
  CHECK(estimates[0] == estimates[1]);
}

#if defined(__linux__) && !defined(__ANDROID__)
TEST_CASE("a thread that was moved elsewhere may run wherever its maker may") {
  const auto allowed = [] {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
  };
  const int before = allowed();
  std::promise<void> moved;
  int of_thread = 0;
  std::thread thread([&] {
    moved.get_future().wait();
    of_thread = allowed();
  });
  move_elsewhere(thread);
  moved.set_value();
  thread.join();
  CHECK(of_thread == before);
}
#endif
