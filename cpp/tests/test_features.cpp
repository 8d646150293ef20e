#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "drhmm/features/frames.hpp"
#include "drhmm/features/squared_exponential.hpp"

using namespace drhmm;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("features follow the formula, also far from zero") {
  RowMatrix frames = RowMatrix::Random(37, 3);
  RowMatrix centers = RowMatrix::Random(11, 3);
  frames.array() += 1e6;
  centers.array() += 1e6;
  RowMatrix features;
  SquaredExponential(ConstRows(centers.data(), 11, 3), 0.7).evaluate(frames, features);
  for (Index t = 0; t < 37; ++t) {
    for (Index b = 0; b < 11; ++b) {
      const double expected = std::exp(-(frames.row(t) - centers.row(b)).squaredNorm() / (2 * 0.7 * 0.7));
      CHECK(features(t, b) == doctest::Approx(expected).epsilon(1e-11));
    }
  }
}

TEST_CASE("windows stay inside their sequence and miss what is missing") {
  RowMatrix samples(5, 1);
  samples << 1, 2, kNaN, 4, 5;
  const Framing framing{Vector::Constant(1, 1.0), Vector::Constant(1, 2.0), 2};
  const FrameReader reader(framing, ConstRows(samples.data(), 5, 1), {3, 2});
  RowMatrix frames;
  std::vector<char> missing;
  reader.read(0, 5, frames, missing);
  CHECK(missing == std::vector<char>{1, 0, 1, 1, 0});
  CHECK(frames(1, 0) == 0.0);  // (1 - mean) * inverse_scale
  CHECK(frames(1, 1) == 2.0);
  CHECK(frames(4, 0) == 6.0);
  CHECK(frames(4, 1) == 8.0);
}

TEST_CASE("a block read from the middle equals the same rows of the whole") {
  const RowMatrix samples = RowMatrix::Random(50, 2);
  const Framing framing{Vector::Zero(2), Vector::Ones(2), 3};
  const FrameReader reader(framing, ConstRows(samples.data(), 50, 2), {7, 13, 30});
  RowMatrix whole, part;
  std::vector<char> whole_missing, part_missing;
  reader.read(0, 50, whole, whole_missing);
  reader.read(18, 20, part, part_missing);
  CHECK(part == whole.middleRows(18, 20));
  CHECK(part_missing == std::vector<char>(whole_missing.begin() + 18, whole_missing.begin() + 38));
}

TEST_CASE("lengths that do not cover the samples are refused") {
  const RowMatrix samples = RowMatrix::Random(5, 1);
  const Framing framing{Vector::Zero(1), Vector::Ones(1), 1};
  CHECK_THROWS_AS(FrameReader(framing, ConstRows(samples.data(), 5, 1), {3, 3}), std::invalid_argument);
}
