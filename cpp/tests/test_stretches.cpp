#include <doctest/doctest.h>

#include <numeric>

#include "drhmm/recursion/smooth.hpp"
#include "drhmm/recursion/stretches.hpp"

using namespace drhmm;

TEST_CASE("stretches cover every frame once, whatever the lengths are") {
  for (const std::vector<Index>& lengths : {std::vector<Index>{9000}, std::vector<Index>(700, 3),
                                            std::vector<Index>{1, 1, 5000, 1, 700}, std::vector<Index>{70000, 2}}) {
    const SequenceStarts starts(lengths);
    const std::vector<Stretch> stretches = cut(starts, 8, 100, 8192);
    CHECK(stretches.size() % 8 == 0);
    Index frame = 0;
    for (const Stretch& own : stretches) {
      CHECK(own.begin == frame);
      CHECK(own.from <= own.begin);
      CHECK(own.to >= own.end);
      frame = own.end;
    }
    CHECK(frame == starts.n_frames());
  }
}

TEST_CASE("messages agree up to a constant, and zeros only with zeros") {
  CHECK(agree({1, 2, 0}, {3, 6, 0}));
  CHECK_FALSE(agree({1, 2, 0}, {3, 6, 1e-300}));
  CHECK_FALSE(agree({1, 2}, {1, 2 + 1e-11}));
  CHECK_FALSE(agree({}, {}));
}

TEST_CASE("filtering and smoothing in stretches is that of one sequence after the other, for every number of states") {
  for (const Index n_states : {2, 3, 4, 5, 6, 7, 8, 9, 16, 40}) {
    const std::vector<Index> lengths{700, 1, 33, 1200, 2, 64};
    const Index n_frames = std::accumulate(lengths.begin(), lengths.end(), Index{0});
    RowMatrix log_ratios = 3 * RowMatrix::Random(n_frames, n_states);
    log_ratios.row(800).setConstant(std::numeric_limits<double>::quiet_NaN());
    RowMatrix transmat = RowMatrix::Constant(n_states, n_states, 0.5 / static_cast<double>(n_states));
    transmat.diagonal().array() += 0.5;
    const Vector startprob = Vector::Constant(n_states, 1.0 / static_cast<double>(n_states));
    const Chain<double> chain(ConstRows(transmat.data(), n_states, n_states),
                              Eigen::Map<const Vector>(startprob.data(), n_states));
    for (const Pass pass : {Pass::filter, Pass::smooth}) {
      RowMatrix found(n_frames, n_states), expected(n_frames, n_states);
      const std::vector<char> done = in_stretches(pass, chain, log_ratios.data(), lengths, 1, found.data());
      if (kLanes<double> == 1 && n_states <= 8) {  // nothing is gained by one lane
        CHECK(done.empty());
        continue;
      }
      REQUIRE(done == std::vector<char>(lengths.size(), 1));
      Index begin = 0;
      for (const Index length : lengths) {
        const ConstRows rows(log_ratios.data() + begin * n_states, length, n_states);
        const Rows out(expected.data() + begin * n_states, length, n_states);
        REQUIRE((pass == Pass::filter ? filter(rows, chain, out) : smooth(rows, chain, out)).ok());
        begin += length;
      }
      CHECK((found.array() / expected.array() - 1).abs().maxCoeff() < 1e-12);
    }
  }
}

TEST_CASE("a stretch that forgets too slowly is seen at its edge") {
  const RowMatrix log_ratios = 0.001 * RowMatrix::Random(9000, 16);
  RowMatrix transmat = RowMatrix::Constant(16, 16, 1e-5);
  transmat.diagonal().setConstant(1 - 15e-5);
  const Vector startprob = Vector::Constant(16, 1.0 / 16);
  const Chain<double> chain(ConstRows(transmat.data(), 16, 16), Eigen::Map<const Vector>(startprob.data(), 16));
  RowMatrix posteriors(9000, 16);
  CHECK(in_stretches(Pass::smooth, chain, log_ratios.data(), {9000}, 1, posteriors.data()) == std::vector<char>{0});
}
