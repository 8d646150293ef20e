#include <doctest/doctest.h>

#include "drhmm/recursion/stretch.hpp"

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
