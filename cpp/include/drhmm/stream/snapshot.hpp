// The state of live sequences as plain numbers, and back.
#pragma once

#include <cstdint>
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
  std::vector<std::int64_t> n_context;         // (rows) samples of the context, if evidence uses it
  std::vector<double> context, last;           // (rows, context_size), (rows, last_size)
  // The state of the alarm; empty without one.
  static constexpr Index kWatchCounts = 6 + Watch::kMarks;
  Index n_watched, frame_size;
  std::vector<double> sums;                  // (watched)
  std::vector<std::int64_t> watch_counts;    // (watched, 14): quiet, begin, last, cause, clock, marks
  std::vector<std::int64_t> witness_places;  // (watched, 4) frames of the highest evidence; -1 if unused
  std::vector<double> witness_scores;        // (watched, 4)
  std::vector<double> witnesses;             // (watched, 4 frame_size)

  Snapshot(const Streams& streams, Index rows)
      : n_rows(rows),
        kept(streams.lag() + 1),
        n_states(streams.chain().n_states()),
        n_columns(streams.chain().n_columns()),
        n_samples_columns(streams.framing().n_columns()),
        past_size((streams.framing().reach() - 1) * n_samples_columns),
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
        last(size(last_size)),
        n_watched(streams.levels() ? rows : 0),
        frame_size(streams.framing().frame_size()),
        sums(watched(1)),
        watch_counts(watched(kWatchCounts)),
        witness_places(watched(AlarmEpisode::kWitnesses)),
        witness_scores(watched(AlarmEpisode::kWitnesses)),
        witnesses(watched(AlarmEpisode::kWitnesses * frame_size)) {}

  static Snapshot of(const Streams& streams);

  // The streams of this state; `empty` has no rows. Throws std::invalid_argument for an impossible state.
  Streams restored(const Streams& empty) const;

 private:
  std::size_t size(Index each) const { return static_cast<std::size_t>(n_rows * each); }
  std::size_t watched(Index each) const { return static_cast<std::size_t>(n_watched * each); }
  void restore_watch(Index i, Streams& streams) const;
  void set_watch(Index i, const Streams::Row& from);
  void set(Index i, const Streams::Row& from, const Streams& streams);
};

}  // namespace drhmm
