// One recursion over many sequences: threads, and the wider number type where double is not enough.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "drhmm/parallel.hpp"
#include "drhmm/recursion/step.hpp"

namespace drhmm {

struct SequenceStatus {
  Status status;
  Index sequence = -1;
};

// For recursions that take sequences one by one only.
struct OneByOne {
  Index width(const Chain<double>&) const { return 0; }
  bool operator()(const Chain<double>&, Index, Index) const { return false; }
};

// Calls recursion(chain, begin, length, sequence) for every sequence with a Chain<double>, and again with a
// Chain<Scaled> if that ran out of range. Reports the first sequence that failed. Gaps have at most longest_gap steps.
// Where together.width(chain) sequences of equal length follow one another, together(chain, begin, length) is tried
// first, and returns whether it did them all.
template <class Recursion, class Together = OneByOne>
SequenceStatus for_each_sequence(const ConstRows& transmat, const Eigen::Map<const Vector>& startprob,
                                 const std::vector<Index>& lengths, std::int64_t longest_gap, int n_threads,
                                 const Recursion& recursion, const Together& together = {}) {
  Chain<double> chain(transmat, startprob);
  Chain<Scaled> scaled_chain(transmat, startprob);
  if (longest_gap > 1) {
    chain.reach(longest_gap);
    scaled_chain.reach(longest_gap);
  }
  const auto n = static_cast<Index>(lengths.size());
  std::vector<Index> begins(lengths.size());
  for (std::size_t k = 1; k < lengths.size(); ++k) begins[k] = begins[k - 1] + lengths[k - 1];
  std::vector<Status> statuses(lengths.size());
  const auto one = [&](Index sequence) {
    const auto k = static_cast<std::size_t>(sequence);
    Status status{Outcome::out_of_range, -1, -1};
    if (chain.range != Range::scaled) status = recursion(chain, begins[k], lengths[k], sequence);
    if (status.outcome == Outcome::out_of_range) {
      status = recursion(scaled_chain, begins[k], lengths[k], sequence);
    }
    statuses[k] = status;
  };
  // Tasks of several sequences where that is possible, of one otherwise.
  const Index width = std::max<Index>(together.width(chain), 1);
  std::vector<std::pair<Index, Index>> tasks;  // first sequence, number of sequences
  for (Index first = 0; first < n;) {
    const auto begin = lengths.begin() + first;
    const bool equal =
        width > 1 && first + width <= n && std::all_of(begin, begin + width, [&](Index l) { return l == *begin; });
    tasks.emplace_back(first, equal ? width : 1);
    first += tasks.back().second;
  }
  parallel_for(static_cast<Index>(tasks.size()), n_threads, [&](Index task) {
    const auto [first, count] = tasks[static_cast<std::size_t>(task)];
    const auto k = static_cast<std::size_t>(first);
    if (count > 1 && together(chain, begins[k], lengths[k])) return;
    for (Index sequence = first; sequence < first + count; ++sequence) one(sequence);
  });
  for (std::size_t k = 0; k < statuses.size(); ++k) {
    if (!statuses[k].ok()) return {statuses[k], static_cast<Index>(k)};
  }
  return {};
}

}  // namespace drhmm
