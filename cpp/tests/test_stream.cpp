#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "drhmm/stream/snapshot.hpp"
#include "drhmm/stream/streams.hpp"

using namespace drhmm;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Setup {
  RowMatrix transmat{{0.9, 0.1, 0.0}, {0.0, 0.9, 0.1}, {0.2, 0.0, 0.8}};
  Vector startprob{{0.5, 0.5, 0.0}};
  RowMatrix log_ratios;
  std::vector<std::int64_t> dt;

  explicit Setup(Index n_frames, double spread) : log_ratios(spread * RowMatrix::Random(n_frames, 3)) {
    for (Index t = 0; t < n_frames; ++t) dt.push_back(t % 5 == 3 ? 700 : 1);
    if (n_frames > 6) log_ratios.row(6).setConstant(kNaN);
  }

  std::shared_ptr<const Chain> chain() const {
    return std::make_shared<Chain>(ConstRows(transmat.data(), 3, 3), Eigen::Map<const Vector>(startprob.data(), 3));
  }
  Evidence evidence() const { return {log_ratios.data(), 3, dt.data()}; }
};

// Every prefix smoothed in Scaled.
RowMatrix batch(const Setup& setup, Index lag) {
  const Index n = setup.log_ratios.rows();
  const Chain chain(ConstRows(setup.transmat.data(), 3, 3), Eigen::Map<const Vector>(setup.startprob.data(), 3),
                    Way::scaled);
  RowMatrix posteriors(n, 3), prefix(n, 3);
  for (Index t = 0; t < n; ++t) {
    const Index length = std::min(t + lag + 1, n);
    REQUIRE(chain.infer(Pass::smooth, setup.evidence(), {length}, 1, {prefix.data()}).status.ok());
    posteriors.row(t) = prefix.row(t);
  }
  return posteriors;
}

Framing plain_framing(Index d, Index window) {
  return {Vector::LinSpaced(d, 0.5, 1.5), Vector::LinSpaced(d, 2.0, 1.0), window};
}

}  // namespace

TEST_CASE("a live sequence answers what fixed-lag smoothing does, in double and beyond it") {
  for (const double spread : {1.0, 300.0, 5000.0}) {
    for (const Index lag : {0, 1, 4}) {
      const Setup setup(40, spread);
      const auto chain = setup.chain();
      const LiveEngine engine = chain->live();
      LiveSequence live(3, lag);
      const RowMatrix expected = batch(setup, lag);
      for (Index t = 0; t < 40; ++t) {
        Vector posterior(3);
        bool has_answer = false;
        const Status status = live.propose(engine, setup.log_ratios.row(t).data(),
                                           setup.dt[static_cast<std::size_t>(t)], posterior.data(), has_answer);
        REQUIRE(status.ok());
        CHECK(has_answer == (t >= lag));
        if (has_answer) CHECK((posterior.transpose() - expected.row(t - lag)).cwiseAbs().maxCoeff() < 1e-12);
        live.commit(engine);
      }
      CHECK(live.n_frames() == 40);
    }
  }
}

TEST_CASE("a proposal that is not committed changes nothing") {
  const Setup setup(10, 2.0);
  const auto chain = setup.chain();
  const LiveEngine engine = chain->live();
  LiveSequence live(3, 1);
  Vector first(3), again(3), other(3);
  bool has_answer = false;
  for (Index t = 0; t < 3; ++t) {
    REQUIRE(live.propose(engine, setup.log_ratios.row(t).data(), 1, first.data(), has_answer).ok());
    live.commit(engine);
  }
  REQUIRE(live.propose(engine, setup.log_ratios.row(3).data(), 1, first.data(), has_answer).ok());
  REQUIRE(live.propose(engine, setup.log_ratios.row(4).data(), 1, other.data(), has_answer).ok());
  REQUIRE(live.propose(engine, setup.log_ratios.row(3).data(), 1, again.data(), has_answer).ok());
  CHECK(first == again);
  CHECK(first != other);
  CHECK(live.n_frames() == 3);
}

TEST_CASE("a restored sequence goes on bit by bit") {
  for (const double spread : {1.0, 5000.0}) {
    const Setup setup(30, spread);
    const auto chain = setup.chain();
    const LiveEngine engine = chain->live();
    LiveSequence live(3, 2), restored(3, 2);
    Vector posterior(3), expected(3);
    bool has_answer = false;
    for (Index t = 0; t < 30; ++t) {
      const std::int64_t dt = setup.dt[static_cast<std::size_t>(t)];
      std::vector<LiveSequence::Kept> frames;
      for (Index back = live.n_kept() - 1; back >= 0; --back) frames.push_back(live.kept(engine, back));
      REQUIRE(restored.restore(engine, live.n_frames(), live.is_wide(), frames).ok());
      REQUIRE(live.propose(engine, setup.log_ratios.row(t).data(), dt, expected.data(), has_answer).ok());
      REQUIRE(restored.propose(engine, setup.log_ratios.row(t).data(), dt, posterior.data(), has_answer).ok());
      if (has_answer) CHECK(posterior == expected);
      live.commit(engine);
    }
  }
}

TEST_CASE("a sample window makes the frames of a frame reader") {
  for (const Index window : {1, 2, 5}) {
    const Framing framing = plain_framing(2, window);
    RowMatrix samples = RowMatrix::Random(30, 2);
    samples(11, 1) = kNaN;
    std::vector<std::int64_t> dt(30, 1);
    dt[20] = 3;
    const FrameReader reader(framing, ConstRows(samples.data(), 30, 2), {20, 10});
    RowMatrix expected;
    std::vector<char> missing;
    reader.read(0, 30, expected, missing);
    SampleWindow live(framing);
    Vector frame(framing.frame_size());
    for (Index t = 0; t < 30; ++t) {
      const auto place = static_cast<std::size_t>(t);
      const bool complete = live.frame(framing, samples.row(t).data(), dt[place], frame.data());
      CHECK(complete == !missing[place]);
      CHECK(frame.transpose() == expected.row(t));
      live.push(framing, samples.row(t).data(), dt[place]);
    }
  }
}

TEST_CASE("if one row cannot take its frame, no row does") {
  const Setup setup(1, 1.0);
  Streams streams(plain_framing(1, 1), setup.chain(), 3, 0);
  for (int k = 0; k < 3; ++k) streams.add();
  const Index rows[] = {0, 1, 2};
  const double samples[] = {0, 0, 0};
  const std::int64_t dt[] = {1, 1, 1};
  RowMatrix evidence = RowMatrix::Zero(3, 3), answers(3, 3);
  evidence.row(1) << -HUGE_VAL, -HUGE_VAL, 0;  // the start excludes the only state that the frame allows
  const SequenceStatus status = streams.advance({3, rows, samples, dt}, evidence.data(), 1, answers.data());
  CHECK(status.status.outcome == Outcome::impossible);
  CHECK(status.sequence == 1);
  for (Index i = 0; i < 3; ++i) CHECK(streams.row(i).sequence.n_frames() == 0);
}

TEST_CASE("retired rows are used again, the first one first") {
  const Setup setup(1, 1.0);
  Streams streams(plain_framing(1, 1), setup.chain(), 3, 0);
  for (Index k = 0; k < 4; ++k) CHECK(streams.add() == k);
  streams.retire(2);
  streams.retire(0);
  CHECK(streams.add() == 0);
  CHECK(streams.add() == 2);
  CHECK(streams.add() == 4);
}

TEST_CASE("a snapshot of many streams goes on as they do") {
  const Setup setup(8, 2.0);
  Streams streams(plain_framing(1, 2), setup.chain(), 3, 1);
  const Streams empty(streams);
  const Index rows[] = {streams.add(), streams.add()};
  const double samples[] = {0, 0};
  const std::int64_t dt[] = {1, 700};
  RowMatrix evidence = setup.log_ratios.topRows(2), answers(2, 3), again(2, 3);
  const auto advance = [&](Streams& which, RowMatrix& out) {
    return which.advance({2, rows, samples, dt}, evidence.data(), 1, out.data()).status.ok();
  };
  REQUIRE(advance(streams, answers));
  Streams restored = Snapshot::of(streams).restored(empty);
  REQUIRE(advance(streams, answers));
  REQUIRE(advance(restored, again));
  CHECK(answers == again);
}

TEST_CASE("exponents of Scaled saturate instead of overflowing") {
  const Scaled tiny = Scaled::from_parts(1.0, -Scaled::kLargestExponent);
  CHECK((tiny * tiny) > Scaled(0));
  CHECK((tiny * tiny).exponent() == -Scaled::kLargestExponent);
  CHECK((Scaled(1) / tiny).exponent() == Scaled::kLargestExponent);
}
