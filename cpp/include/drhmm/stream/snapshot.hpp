// The state of live sequences as plain numbers, and back.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "drhmm/stream/streams.hpp"

namespace drhmm {

// One entry per row of Streams; unused numbers are 0. kept = lag + 1 frames, the oldest first.
struct Snapshot {
  Index n_rows, kept, n_states, n_columns;
  Index n_samples_columns, past_size;          // columns of a sample, numbers of the window without the newest sample
  std::vector<char> live, wide;                // (rows)
  std::vector<std::int64_t> n_frames, n_past;  // (rows)
  std::vector<double> past;                    // (rows, past_size)
  std::vector<double> mantissa;                // (rows, kept, states) messages: mantissa 2^exponent
  std::vector<std::int64_t> exponent;          // (rows, kept, states)
  std::vector<double> evidence;                // (rows, kept, columns)
  std::vector<std::int64_t> dt;                // (rows, kept)

  Snapshot(const Streams& streams, Index rows)
      : n_rows(rows),
        kept(streams.lag() + 1),
        n_states(streams.chain().n_states()),
        n_columns(streams.chain().n_columns()),
        n_samples_columns(streams.framing().n_columns()),
        past_size((streams.framing().window - 1) * n_samples_columns),
        live(size(1)),
        wide(size(1)),
        n_frames(size(1)),
        n_past(size(1)),
        past(size(past_size)),
        mantissa(size(kept * n_states)),
        exponent(size(kept * n_states)),
        evidence(size(kept * n_columns)),
        dt(size(kept)) {}

  static Snapshot of(const Streams& streams) {
    Snapshot state(streams, streams.n_rows());
    for (Index i = 0; i < state.n_rows; ++i) state.set(i, streams.row(i), streams.engine());
    return state;
  }

  // The streams of this state; `empty` has no rows. Throws std::invalid_argument for an impossible state.
  Streams restored(const Streams& empty) const {
    constexpr std::int64_t kLongestGap = std::int64_t{1} << 53;
    const auto require = [](bool condition, const char* message) {
      if (!condition) throw std::invalid_argument(message);
    };
    Streams streams = empty;
    for (Index i = 0; i < n_rows; ++i) {
      const auto row = static_cast<std::size_t>(i);
      require(n_frames[row] >= 0 && n_frames[row] <= LiveSequence::kMostFrames && n_past[row] >= 0 &&
                  n_past[row] < empty.framing().window,
              "a count is out of range");
      require(live[row] != 0 || n_frames[row] == 0, "a retired row has frames");
      const double* const end = past.data() + (i + 1) * past_size;
      require(std::none_of(end - n_past[row] * n_samples_columns, end, [](double value) { return std::isnan(value); }),
              "a sample of the window is NaN");
      streams.add();
      streams.row(i).live = live[row] != 0;
      streams.row(i).window.restore(past.data() + i * past_size, n_past[row]);
      std::vector<LiveSequence::Kept> frames;
      for (Index k = 0; k < std::min<std::int64_t>(n_frames[row], kept); ++k) {
        LiveSequence::Kept frame;
        frame.dt = dt[static_cast<std::size_t>(i * kept + k)];
        require(frame.dt >= 1 && frame.dt <= kLongestGap, "a gap is out of range");
        const double* const log_ratios = evidence.data() + (i * kept + k) * n_columns;
        frame.evidence.assign(log_ratios, log_ratios + n_columns);
        bool has_largest = false;
        for (Index j = 0; j < n_states; ++j) {
          const auto place = static_cast<std::size_t>((i * kept + k) * n_states + j);
          const double m = mantissa[place];
          const std::int64_t e = exponent[place];
          const std::int64_t least = wide[row] != 0 ? -Scaled::kLargestExponent : -1074;
          require((m == 0 && e == 0) || (m >= 1 && m < 2 && e <= 0 && e >= least), "a message is out of range");
          has_largest = has_largest || (m > 0 && e == 0);
          frame.message.push_back(Scaled::from_parts(m, e));
        }
        require(has_largest, "a message has no likeliest state");
        frames.push_back(std::move(frame));
      }
      const Status status = streams.row(i).sequence.restore(streams.engine(), n_frames[row], wide[row] != 0, frames);
      require(status.ok(), "the evidence of a frame is none");
    }
    streams.look_for_retired_rows();
    return streams;
  }

 private:
  std::size_t size(Index each) const { return static_cast<std::size_t>(n_rows * each); }

  void set(Index i, const Streams::Row& from, const LiveEngine& engine) {
    const auto row = static_cast<std::size_t>(i);
    live[row] = from.live ? 1 : 0;
    wide[row] = from.sequence.is_wide() ? 1 : 0;
    n_frames[row] = from.sequence.n_frames();
    n_past[row] = from.window.n_past();
    const auto n_used = static_cast<std::ptrdiff_t>(n_past[row] * n_samples_columns);
    std::copy(from.window.past().end() - n_used, from.window.past().end(), past.begin() + (i + 1) * past_size - n_used);
    for (Index k = 0; k < from.sequence.n_kept(); ++k) {
      const LiveSequence::Kept frame = from.sequence.kept(engine, from.sequence.n_kept() - 1 - k);
      dt[static_cast<std::size_t>(i * kept + k)] = frame.dt;
      std::copy(frame.evidence.begin(), frame.evidence.end(), evidence.begin() + (i * kept + k) * n_columns);
      for (Index j = 0; j < n_states; ++j) {
        const auto place = static_cast<std::size_t>((i * kept + k) * n_states + j);
        mantissa[place] = frame.message[static_cast<std::size_t>(j)].mantissa();
        exponent[place] = frame.message[static_cast<std::size_t>(j)].exponent();
      }
    }
  }
};

}  // namespace drhmm
