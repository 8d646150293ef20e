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
  Index context_size, last_size;               // numbers of the context and of the last values; 0 without it
  std::vector<char> live, wide;                // (rows)
  std::vector<std::int64_t> n_frames, n_past;  // (rows)
  std::vector<double> past;                    // (rows, past_size)
  std::vector<double> mantissa;                // (rows, kept, states) messages: mantissa 2^exponent
  std::vector<std::int64_t> exponent;          // (rows, kept, states)
  std::vector<double> evidence;                // (rows, kept, columns)
  std::vector<std::int64_t> dt;                // (rows, kept)
  std::vector<std::int64_t> n_context;         // (rows) samples of the context, if evidence looks at it
  std::vector<double> context, last;           // (rows, context_size), (rows, last_size)

  Snapshot(const Streams& streams, Index rows)
      : n_rows(rows),
        kept(streams.lag() + 1),
        n_states(streams.chain().n_states()),
        n_columns(streams.chain().n_columns()),
        n_samples_columns(streams.framing().n_columns()),
        past_size((streams.framing().window - 1) * n_samples_columns),
        context_size(streams.context() == nullptr ? 0 : streams.context()->history() * n_samples_columns),
        last_size(streams.context() == nullptr ? 0 : n_samples_columns),
        live(size(1)),
        wide(size(1)),
        n_frames(size(1)),
        n_past(size(1)),
        past(size(past_size)),
        mantissa(size(kept * n_states)),
        exponent(size(kept * n_states)),
        evidence(size(kept * n_columns)),
        dt(size(kept)),
        n_context(size(1)),
        context(size(context_size)),
        last(size(last_size)) {}

  static Snapshot of(const Streams& streams) {
    Snapshot state(streams, streams.n_rows());
    for (Index i = 0; i < state.n_rows; ++i) state.set(i, streams.row(i), streams);
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
      if (empty.context() != nullptr) {
        const double *const own = context.data() + i * context_size, *const values = last.data() + i * last_size;
        const auto is_number = [](double value) { return std::isfinite(value); };
        require(n_context[row] >= 0 && n_context[row] <= empty.context()->history() &&
                    std::all_of(own, own + context_size, is_number) &&
                    std::all_of(values, values + last_size, is_number),
                "the context of a row is out of range");
        streams.row(i).past->restore(*empty.context(), own, n_context[row], values);
      }
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

  void set(Index i, const Streams::Row& from, const Streams& streams) {
    const LiveEngine& engine = streams.engine();
    const auto row = static_cast<std::size_t>(i);
    live[row] = from.live ? 1 : 0;
    wide[row] = from.sequence.is_wide() ? 1 : 0;
    n_frames[row] = from.sequence.n_frames();
    n_past[row] = from.window.n_past();
    const auto n_used = static_cast<std::ptrdiff_t>(n_past[row] * n_samples_columns);
    std::copy(from.window.past().end() - n_used, from.window.past().end(), past.begin() + (i + 1) * past_size - n_used);
    if (from.past) {
      n_context[row] = from.past->n_samples();
      const std::vector<double> own = from.past->past(*streams.context());
      std::copy(own.begin(), own.end(), context.begin() + i * context_size);
      std::copy(from.past->last().begin(), from.past->last().end(), last.begin() + i * last_size);
    }
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
