// Stretches of frames that run side by side, and checks of the assumptions at their edges.
//
// A stretch inside a sequence does not know its first message. It starts some frames earlier with an arbitrary one: a
// mixing chain forgets (Birkhoff: products of positive matrices contract the projective distance between messages,
// whatever the evidence). The warm-up was long enough if the neighbour's message at the same frame agrees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "drhmm/types.hpp"

namespace drhmm {

// Frames begin..end-1; forward messages start at `from`, backward ones at `to`.
struct Stretch {
  Index from = 0, begin = 0, end = 0, to = 0;

  Index n_steps() const { return to - from; }
};

// Messages of the frames before `begin` and before `end`, up to a constant; empty if a stretch never got there.
struct Edges {
  std::vector<double> before_begin, before_end;    // forward messages
  std::vector<double> back_to_begin, back_to_end;  // backward messages
  std::vector<Index> disagreements;                // frames where a backward message differs from the one assumed
  bool is_hard = false;
  std::vector<std::pair<Index, double>> gains;  // last frame and log likelihood of each part of a sequence
};

// The starts of concatenated sequences.
class SequenceStarts {
 public:
  explicit SequenceStarts(const std::vector<Index>& lengths) {
    starts_.reserve(lengths.size() + 1);
    starts_.push_back(0);
    for (const Index length : lengths) starts_.push_back(starts_.back() + length);
  }

  Index n_frames() const { return starts_.back(); }
  Index n_sequences() const { return static_cast<Index>(starts_.size()) - 1; }
  Index start(Index sequence) const { return starts_[static_cast<std::size_t>(sequence)]; }

  Index sequence_of(Index t) const {
    return std::upper_bound(starts_.begin(), starts_.end() - 1, t) - starts_.begin() - 1;
  }

  // Calls use(t) for every start t in from..to-1.
  template <class Use>
  void for_each(Index from, Index to, const Use& use) const {
    for (auto t = std::lower_bound(starts_.begin(), starts_.end() - 1, from); t != starts_.end() - 1 && *t < to; ++t) {
      use(*t);
    }
  }

  // The start of a sequence, or the end of the last one, that is nearest to frame t.
  Index nearest(Index t) const {
    const auto after = std::lower_bound(starts_.begin(), starts_.end() - 1, t);
    if (after == starts_.begin()) return *after;
    return *after - t < t - *(after - 1) ? *after : *(after - 1);
  }

 private:
  std::vector<Index> starts_;  // and the end of the last one
};

// Stretches that advance together, and the steps where some of them start, begin or end.
class StretchGroup {
 public:
  StretchGroup(const SequenceStarts& starts, const Stretch* stretches, Index width)
      : stretches_(stretches), width_(width), n_frames_in_all_(starts.n_frames()) {
    for (Index lane = 0; lane < width; ++lane) n_steps_ = std::max(n_steps_, stretches[lane].n_steps());
    starting_.assign(static_cast<std::size_t>(n_steps_), 0);
    cut_.assign(static_cast<std::size_t>(n_steps_), 0);
    for (Index lane = 0; lane < width; ++lane) {
      const Stretch& own = stretches[lane];
      const auto bit = static_cast<std::uint8_t>(1U << lane);
      starts.for_each(own.from, own.to, [&](Index t) { starting_[static_cast<std::size_t>(t - own.from)] |= bit; });
      // Finished lanes start again: backward messages from there have no evidence and no rounding errors.
      if (own.n_steps() < n_steps_) starting_[static_cast<std::size_t>(own.n_steps())] |= bit;
      for (const Index t : {own.begin, own.end}) {
        if (t < own.to) cut_[static_cast<std::size_t>(t - own.from)] |= bit;
      }
    }
  }

  Index n_steps() const { return n_steps_; }
  Index n_frames_in_all() const { return n_frames_in_all_; }  // of this and all other groups
  const Stretch& operator[](Index lane) const { return stretches_[lane]; }
  // The lanes, as bits, where a sequence starts at a step, and where their stretch begins or ends.
  std::uint8_t starting(Index step) const { return starting_[static_cast<std::size_t>(step)]; }
  std::uint8_t cut(Index step) const { return cut_[static_cast<std::size_t>(step)]; }
  // Whether there are no such lanes in `count` steps.
  bool is_uneventful(Index first, Index count) const {
    unsigned lanes = 0;
    for (Index step = first; step < first + count; ++step) lanes |= starting(step) | cut(step);
    return lanes == 0;
  }

  // Stores message_of(lane) in the edges of lanes that are at a cut.
  template <class MessageOf>
  void show(Index step, Edges* edges, std::vector<double> Edges::* at_begin, std::vector<double> Edges::* at_end,
            const MessageOf& message_of) const {
    for (Index lane = 0; lane < width_; ++lane) {
      const Index t = stretches_[lane].from + step;
      if (t == stretches_[lane].begin) edges[lane].*at_begin = message_of(static_cast<int>(lane));
      if (t == stretches_[lane].end) edges[lane].*at_end = message_of(static_cast<int>(lane));
    }
  }

 private:
  const Stretch* stretches_;  // (width)
  Index width_, n_frames_in_all_;
  Index n_steps_ = 0;
  std::vector<std::uint8_t> starting_, cut_;  // (steps)
};

constexpr Index kFramesOfLines = 8;  // they fill whole lines of the cache, for any number of states

// All frames in groups of `width` stretches, cut at a nearby start of a sequence, or else between lines of the cache.
// The cuts depend only on the frames, so that threads never change a result.
inline std::vector<Stretch> cut(const SequenceStarts& starts, Index width, Index warm_up, Index longest) {
  const Index n_frames = starts.n_frames();
  const Index n_groups = (n_frames + width * longest - 1) / (width * longest);
  const Index n_stretches = n_groups * width;
  std::vector<Index> cuts(static_cast<std::size_t>(n_stretches) + 1, 0);
  for (Index k = 1; k < n_stretches; ++k) {
    const Index middle = n_frames / n_stretches * k + n_frames % n_stretches * k / n_stretches;
    const Index start = starts.nearest(middle);
    const Index moved =
        std::abs(start - middle) <= n_frames / n_stretches / 4 ? start : middle / kFramesOfLines * kFramesOfLines;
    cuts[static_cast<std::size_t>(k)] = std::max(moved, cuts[static_cast<std::size_t>(k - 1)]);
  }
  cuts.back() = n_frames;
  std::vector<Stretch> stretches(static_cast<std::size_t>(n_stretches));
  for (std::size_t k = 0; k < stretches.size(); ++k) {
    Stretch& own = stretches[k];
    own.begin = own.from = cuts[k];
    own.end = own.to = cuts[k + 1];
    if (own.begin == own.end) continue;
    own.from = std::max(own.begin - warm_up, starts.start(starts.sequence_of(own.begin)));
    const Index last = starts.sequence_of(own.end - 1);
    own.to = std::min(own.end + warm_up, starts.start(last + 1));
  }
  return stretches;
}

// The total steps of all groups; one step advances all lanes.
inline Index n_steps(const std::vector<Stretch>& stretches, Index width) {
  Index steps = 0;
  for (std::size_t first = 0; first < stretches.size(); first += static_cast<std::size_t>(width)) {
    Index longest = 0;
    for (Index k = 0; k < width; ++k) {
      longest = std::max(longest, stretches[first + static_cast<std::size_t>(k)].n_steps());
    }
    steps += longest;
  }
  return steps;
}

// Whether two messages agree up to a constant, within 2^-43 in every ratio.
inline bool agree(const std::vector<double>& one, const std::vector<double>& other) {
  if (one.size() != other.size() || one.empty()) return false;
  double least = HUGE_VAL, most = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one[i] == 0 && other[i] == 0) continue;
    const double ratio = one[i] / other[i];
    least = std::min(least, ratio);
    most = std::max(most, ratio);
  }
  return most - least <= 0x1p-43 * least;
}

}  // namespace drhmm
