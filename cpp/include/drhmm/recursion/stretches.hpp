// Filtering and smoothing of many frames at once: threads over groups of stretches.
#pragma once

#include <atomic>
#include <vector>

#include "drhmm/parallel.hpp"
#include "drhmm/recursion/chain.hpp"

namespace drhmm {

enum class Pass { filter, smooth };

namespace detail {

// Sequences of which an edge between two stretches did not agree: their stretches started with too little knowledge.
inline void mark_disagreeing(Pass pass, const SequenceStarts& starts, const std::vector<Stretch>& stretches,
                             const std::vector<Edges>& edges, std::vector<char>& done) {
  for (const Edges& own : edges) {
    for (const Index t : own.disagreements) done[static_cast<std::size_t>(starts.sequence_of(t))] = 0;
  }
  for (std::size_t k = 1; k < stretches.size(); ++k) {
    const Index cut = stretches[k].begin;
    if (cut == starts.n_frames() || stretches[k].begin == stretches[k].end) continue;
    const Index sequence = starts.sequence_of(cut);
    if (cut == starts.start(sequence)) continue;
    const bool forward = agree(edges[k - 1].before_end, edges[k].before_begin);
    const bool backward = pass == Pass::filter || agree(edges[k - 1].back_to_end, edges[k].back_to_begin);
    if (!forward || !backward) done[static_cast<std::size_t>(sequence)] = 0;
  }
}

}  // namespace detail

// Whether each sequence is done; empty, with nothing of use written, where that does not apply or does not pay.
// log_ratios, posteriors (N, S) hold the sequences one after the other.
inline std::vector<char> in_stretches(Pass pass, const Chain<double>& chain, const double* log_ratios,
                                      const std::vector<Index>& lengths, int n_threads, double* posteriors) {
  constexpr Index kFewest = 32;     // frames per stretch
  constexpr Index kLongest = 8192;  // more stretches give threads something to do
  if (chain.mixing == nullptr) return {};
  const MixingSizes& mixing = *chain.mixing;
  const Index width = mixing.stretches_together();
  const SequenceStarts starts(lengths);
  if (width == 1 || starts.n_frames() < kFewest * width) return {};
  const Index n_warm_up = warm_up(chain.transmat);
  const std::vector<Stretch> stretches = cut(starts, width, n_warm_up, kLongest);
  // A frame in a stretch takes about two fifths of the time of one alone; warm-ups must not eat that up.
  if (2 * width * n_steps(stretches, width) > 5 * starts.n_frames()) return {};

  std::vector<Edges> edges(stretches.size());
  std::atomic<bool> ordinary{true};
  parallel_for(static_cast<Index>(stretches.size()) / width, n_threads, [&](Index k) {
    if (!ordinary) return;
    const StretchGroup group(starts, stretches.data() + k * width, width);
    Edges* const own = edges.data() + k * width;
    const bool is_ordinary = pass == Pass::filter ? mixing.filter(log_ratios, group, own, posteriors)
                                                  : mixing.smooth(log_ratios, group, own, n_warm_up, posteriors);
    fence_streams();
    if (!is_ordinary) ordinary = false;
  });
  if (!ordinary) return {};
  std::vector<char> done(lengths.size(), 1);
  detail::mark_disagreeing(pass, starts, stretches, edges, done);
  return done;
}

}  // namespace drhmm
