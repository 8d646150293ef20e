// One recursion over many sequences: threads, and the wider number type where double is not enough.
#pragma once

#include <algorithm>
#include <vector>

#include "drhmm/parallel.hpp"
#include "drhmm/recursion/step.hpp"

namespace drhmm {

struct SequenceStatus {
  Status status;
  Index sequence = -1;
};

// Calls recursion(chain, begin, length, sequence) for every sequence with a Chain<double>, and again with a
// Chain<Scaled> if that ran out of range. Reports the first sequence that failed. Gaps have at most longest_gap steps.
// Before that, together(chain) may work on all of them at once; it returns which are done, or nothing.
template <class Together, class Recursion>
SequenceStatus for_each_sequence(const ConstRows& transmat, const Eigen::Map<const Vector>& startprob,
                                 const std::vector<Index>& lengths, std::int64_t longest_gap, int n_threads,
                                 const Together& together, const Recursion& recursion) {
  Chain<double> chain(transmat, startprob);
  const std::vector<char> done = together(chain);
  if (!done.empty() && std::all_of(done.begin(), done.end(), [](char one) { return one != 0; })) return {};
  Chain<Scaled> scaled_chain(transmat, startprob);
  if (longest_gap > 1) {
    chain.reach(longest_gap);
    scaled_chain.reach(longest_gap);
  }
  std::vector<Index> begins(lengths.size());
  for (std::size_t k = 1; k < lengths.size(); ++k) begins[k] = begins[k - 1] + lengths[k - 1];
  std::vector<Status> statuses(lengths.size());
  parallel_for(static_cast<Index>(lengths.size()), n_threads, [&](Index sequence) {
    const auto k = static_cast<std::size_t>(sequence);
    if (!done.empty() && done[k] != 0) return;
    Status status{Outcome::out_of_range, -1, -1};
    if (chain.range != Range::scaled) status = recursion(chain, begins[k], lengths[k], sequence);
    if (status.outcome == Outcome::out_of_range) {
      status = recursion(scaled_chain, begins[k], lengths[k], sequence);
    }
    statuses[k] = status;
  });
  for (std::size_t k = 0; k < statuses.size(); ++k) {
    if (!statuses[k].ok()) return {statuses[k], static_cast<Index>(k)};
  }
  return {};
}

}  // namespace drhmm
