// Many frames at once: groups of stretches side by side, threads over groups.
#pragma once

#include <atomic>
#include <vector>

#include "drhmm/recursion/sequence.hpp"
#include "drhmm/system/parallel.hpp"

namespace drhmm {

// Runs one group of stretches in Value, forward and backward chunk by chunk, so that messages stay in the cache. Each
// chunk has its own backward warm-up; its message is compared with the result of the next chunk.
template <class Value, class Operator>
void run_group(Pass pass, const ChainFacts& facts, const Operator& op, const Evidence& evidence, const Answers& answers,
               const StretchGroup& group, Edges* edges, Index warm_up) {
  using Engine = Recursion<Value, Operator>;
  const Index stride = op.template stride<Value>(), n_steps = group.n_steps();
  const bool is_smoothed = pass == Pass::smooth && answers.posteriors != nullptr;
  warm_up = (warm_up + kBlock - 1) / kBlock * kBlock;
  // With many states the cache holds little more than the warm-up of a chunk, so chunks are long, but no longer than
  // memory that is kept between calls.
  const Index n_states = op.n_states(), room = n_states <= 8 ? 4096 : 65536 * 8 / kWidth<Value>;
  const Index chunk = is_smoothed ? std::min<Index>(room / n_states / kBlock * kBlock, 4096) : kBlock;
  const Index capacity = is_smoothed ? chunk + warm_up : kBlock;
  Engine engine(facts, op, evidence, answers, group, edges, capacity);
  std::vector<Value> last(static_cast<std::size_t>(stride)), back(last), assumed(last), expected(last), before(last);
  engine.set_unknown(last.data());
  engine.set_unknown(assumed.data());
  if (!is_smoothed) {
    for (Index first = 0; first < n_steps; first += kBlock) {
      const Index count = std::min(kBlock, n_steps - first);
      engine.forward(first, count, 0, last.data());
      if (answers.posteriors != nullptr) engine.write_filtered(first, count, 0);
    }
    engine.finish_forward(last.data());
  }
  Index filled = 0;
  for (Index base = 0; base < n_steps && is_smoothed; base += chunk) {
    const Index end = std::min(n_steps - base, capacity);
    for (; filled < end; filled += kBlock) {
      engine.forward(base + filled, std::min(kBlock, end - filled), filled, last.data());
    }
    const bool is_last = base + end == n_steps;
    if (is_last) engine.finish_forward(last.data());
    expected = assumed;
    engine.set_unknown(back.data());
    for (Index stop = end; stop > 0;) {
      const Index first = (stop - 1) / kBlock * kBlock;
      if (stop == chunk && !is_last) assumed = back;
      const Value* earlier = base > 0 ? before.data() : nullptr;
      if (first > 0) earlier = engine.messages + (first - 1) * stride;
      engine.backward(base + first, stop - first, first, back.data(), earlier, first < chunk || is_last);
      stop = first;
    }
    if (base > 0) {
      for (int l = 0; l < kWidth<Value>; ++l) {
        const Index t = group[l].from + base;
        if (t >= group[l].to) continue;
        std::vector<double> one(static_cast<std::size_t>(op.n_states())), other(one);
        for (std::size_t i = 0; i < one.size(); ++i) one[i] = lane(expected[i], l), other[i] = lane(back[i], l);
        if (!agree(one, other)) edges[l].disagreements.push_back(t);
      }
    }
    if (is_last) break;
    std::copy_n(engine.messages + (chunk - 1) * stride, stride, before.data());
    filled = end - chunk;
    engine.keep_from(chunk, filled);
  }
  for (int l = 0; l < kWidth<Value>; ++l) edges[l].is_hard = engine.is_hard(l);
  if (answers.counts != nullptr) engine.accept_counts();
  fence_streams();
}

// Marks sequences as not done if messages disagree at an edge, or if a stretch is hard.
inline void mark_disagreeing(bool is_smoothed, const SequenceStarts& starts, const std::vector<Stretch>& stretches,
                             const std::vector<Edges>& edges, std::vector<char>& done) {
  for (std::size_t k = 0; k < stretches.size(); ++k) {
    if (stretches[k].begin == stretches[k].end) continue;
    for (const Index t : edges[k].disagreements) done[static_cast<std::size_t>(starts.sequence_of(t))] = 0;
    if (edges[k].is_hard) {
      const Index first = starts.sequence_of(stretches[k].from), last = starts.sequence_of(stretches[k].to - 1);
      std::fill(done.begin() + first, done.begin() + last + 1, 0);
    }
    const Index cut = stretches[k].begin, sequence = starts.sequence_of(cut);
    if (k == 0 || cut == starts.start(sequence)) continue;
    const bool forward = agree(edges[k - 1].before_end, edges[k].before_begin);
    const bool backward = !is_smoothed || agree(edges[k - 1].back_to_end, edges[k].back_to_begin);
    if (!forward || !backward) done[static_cast<std::size_t>(sequence)] = 0;
  }
}

// Whether each sequence is done; empty if stretches do not pay off. Answers of sequences that are not done are
// unspecified; transitions are counted only if all are done. run_group(answers, group, edges) runs `width` stretches;
// n: columns.
template <class RunGroup>
std::vector<char> in_stretches(const RunGroup& run_group, Index width, Index warm_up, bool is_forced, bool is_smoothed,
                               Index n, const SequenceStarts& starts, int n_threads, const Answers& answers) {
  constexpr Index kFewest = 32;     // frames per stretch
  constexpr Index kLongest = 8192;  // more stretches give threads something to do
  const Index n_frames = starts.n_frames();
  if (n_frames < kFewest * std::max<Index>(width, 8) && !is_forced) return {};
  if (width == 1 && n_frames < 4 * warm_up) return {};
  const std::vector<Stretch> stretches = cut(starts, width, warm_up, kLongest);
  // A frame in a stretch takes about two fifths of the time of a single one; warm-ups must cost less than this saves.
  if (2 * width * n_steps(stretches, width) > 5 * n_frames && !is_forced) return {};

  std::vector<Edges> edges(stretches.size());
  const Index n_groups = static_cast<Index>(stretches.size()) / width;
  std::vector<RowMatrix> counts(answers.counts == nullptr ? 0 : static_cast<std::size_t>(n_groups));
  parallel_for(n_groups, n_threads, [&](Index k) {
    const StretchGroup group(starts, stretches.data() + k * width, width);
    Answers own = answers;
    if (answers.counts != nullptr) {
      counts[static_cast<std::size_t>(k)].setZero(n, n);
      own.counts = counts[static_cast<std::size_t>(k)].data();
    }
    run_group(own, group, edges.data() + k * width);
  });
  std::vector<char> done(static_cast<std::size_t>(starts.n_sequences()), 1);
  mark_disagreeing(is_smoothed, starts, stretches, edges, done);
  if (answers.counts != nullptr) {
    if (std::find(done.begin(), done.end(), 0) != done.end()) return {};
    for (const RowMatrix& own : counts) Rows(answers.counts, n, n) += own;
  }
  if (answers.log_likelihoods != nullptr) {
    std::fill_n(answers.log_likelihoods, starts.n_sequences(), 0.0);
    for (const Edges& own : edges) {
      for (const auto& [t, gain] : own.gains) answers.log_likelihoods[starts.sequence_of(t)] += gain;
    }
  }
  return done;
}

}  // namespace drhmm
