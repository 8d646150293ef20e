// Begins and ends alarms, frame by frame: the same rule in calibration, recordings and live sequences.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "drhmm/types.hpp"

namespace drhmm {

struct AlarmLevels {
  double sum, frame;      // nats: of the sum of evidence, and of the evidence of one frame
  std::int64_t hold_off;  // steps without a frame above a level that end an alarm
  std::int64_t span;      // steps after which a long alarm counts again against the promise
};

// One alarm, in frames of its sequence.
struct AlarmEpisode {
  static constexpr int kWitnesses = 4;
  static constexpr double kNothing = -std::numeric_limits<double>::infinity();

  std::int64_t begin = -1, last = -1;                           // begin < 0: no alarm
  int cause = 0;                                                // level exceeded first: 1 of the sum, 2 of one frame
  std::array<double, kWitnesses> scores;                        // highest evidence, in any order; kNothing if unused
  std::array<std::int64_t, kWitnesses> places{-1, -1, -1, -1};  // their frames

  AlarmEpisode() { scores.fill(kNothing); }

  bool is_on() const { return begin >= 0; }
  // The number of kept frames, in the first places.
  Index n_kept() const {
    return std::count_if(places.begin(), places.end(), [](auto place) { return place >= 0; });
  }
  // The place of the highest evidence; of equal ones, the first.
  int peak() const {
    int best = 0;
    for (int k = 1; k < kWitnesses; ++k) {
      const auto i = static_cast<std::size_t>(k), j = static_cast<std::size_t>(best);
      if (scores[i] > scores[j] || (scores[i] == scores[j] && places[i] < places[j])) best = k;
    }
    return best;
  }
  // Keeps a frame in the place of the lowest one. Returns that place, or -1 if none is lower.
  int add(double score, std::int64_t place) {
    auto* const lowest = std::min_element(scores.begin(), scores.end());
    if (!(score > *lowest)) return -1;
    const auto k = lowest - scores.begin();
    *lowest = score;
    places[static_cast<std::size_t>(k)] = place;
    return static_cast<int>(k);
  }
};

// An alarm along one sequence.
struct Watch {
  // Evidence of a frame counts up to kHighest, and the sum up to kMargin above its level: more would only delay the
  // end.
  static constexpr double kHighest = 230, kMargin = 1;
  static constexpr std::int64_t kLongest = std::int64_t{1} << 53;

  double total = 0;         // c_t = max(0, c_{t-1} + log w_*)
  std::int64_t frame = -1;  // the newest one
  std::int64_t quiet = 0;   // steps since the last frame above a level
  AlarmEpisode now, ended;  // ended: the alarm that the newest frame ended, if any
  // Steps where alarms began, or a long one counts again: their number, and the newest ones in ascending order.
  static constexpr int kMarks = 8;
  std::int64_t clock = 0, n_marks = 0;
  std::array<std::int64_t, kMarks> marks{};

  // Takes log w_* of one more frame, NaN if it is missing, dt steps after the one before. Returns where the frame is
  // kept among the highest ones of the alarm, or -1.
  int step(const AlarmLevels& levels, double value, std::int64_t dt) {
    ++frame;
    clock = std::min(clock + dt, kLongest);
    quiet = std::min(quiet + dt, kLongest);
    int cause = 0;
    if (value == value) {
      value = std::min(value, kHighest);
      total = std::min(std::max(0.0, total + value), levels.sum + kMargin);
      cause = value > levels.frame ? 2 : (total > levels.sum ? 1 : 0);
    }
    if (ended.is_on()) ended = {};
    if (now.is_on() && quiet > levels.hold_off) ended = std::exchange(now, {});
    if (cause == 0) return -1;
    if (!now.is_on() || clock - marks.back() >= levels.span) {
      ++n_marks;
      std::rotate(marks.begin(), marks.begin() + 1, marks.end());
      marks.back() = clock;
    }
    if (!now.is_on()) {
      now.begin = frame;
      now.cause = cause;
    }
    now.last = frame;
    quiet = 0;
    return now.add(value, frame);
  }
};

// The alarms of one sequence with scores (T) and dt (T), or null without gaps. sums (T) <- the cumulative sum; watch <-
// its state after the last frame.
inline std::vector<AlarmEpisode> follow(const AlarmLevels& levels, const double* scores, const std::int64_t* dt,
                                        Index n_frames, double* sums, Watch& watch) {
  std::vector<AlarmEpisode> found;
  for (Index t = 0; t < n_frames; ++t) {
    watch.step(levels, scores[t], dt == nullptr ? 1 : dt[t]);
    sums[t] = watch.total;
    if (watch.ended.is_on()) found.push_back(watch.ended);
  }
  if (watch.now.is_on()) found.push_back(watch.now);
  return found;
}

// The number of alarms in normal data, long ones again after each span. excursions of the sum, (n, 3): sequence, first
// step and number of frames of each; values: their concatenated log w_*.
inline Index count_alarms(const AlarmLevels& levels, const ConstRows& excursions, const double* values) {
  Index n_found = 0;
  Watch watch;
  double sequence = -1, clock = 0;
  for (Index i = 0; i < excursions.rows(); ++i) {
    if (excursions(i, 0) != sequence) {
      n_found += watch.n_marks;
      watch = {};
      clock = -1;
      sequence = excursions(i, 0);
    }
    watch.total = 0;
    for (double t = 0; t < excursions(i, 2); ++t, ++values) {
      const double now = excursions(i, 1) + t;
      watch.step(levels, *values, static_cast<std::int64_t>(now - clock));
      clock = now;
    }
  }
  return n_found + watch.n_marks;
}

}  // namespace drhmm
