// A Markov chain that recursions run on: built once, never changed, shared by threads. recursion/README.md says which
// path answers what. Compiled in cpp/src/chain.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "drhmm/types.hpp"

namespace drhmm {

struct Evidence;        // recursion/evidence.hpp
struct SequenceStatus;  // the same
struct LiveEngine;      // recursion/live_sequence.hpp
struct ChainFacts;      // recursion/facts.hpp
class SequenceStarts;   // recursion/stretch.hpp
class ChainEngine;      // cpp/src/chain.cpp

enum class Pass { filter, smooth };

// Which numbers are used: what is best, or, for tests, always the same ones.
enum class Way { best, alone, lanes, scaled };

// The parts of a chain with durations: state i is a row of stages with the same evidence.
struct StageRules {
  RowMatrix leaving;        // (M, M) B_ij: where state i leads when it is left
  std::vector<Index> size;  // (M) stages of each state
  Vector stay;              // (stages)
  Vector leave;             // (M) how often the last stage of a state is left at a step
  Vector skip;              // (M) how often a state is entered at its last stage instead of its first
  bool has_unknown = false;
  double rate = 0;  // of the unknown: how often it begins at a step
  double keep = 0;  // how likely it goes on for another step
  Vector back;      // (stages) where it leads when it does not
};

// Where answers go; null: not wanted.
struct Answers {
  double* posteriors = nullptr;       // (N, C)
  double* counts = nullptr;           // (C, C) expected transitions, added up
  double* log_likelihoods = nullptr;  // (sequences)
};

class Chain {
 public:
  static constexpr Index kMostWithDurations = 128;  // states

  // transmat (S, S), startprob (S)
  Chain(const ConstRows& transmat, const Eigen::Map<const Vector>& startprob, Way way = Way::best);
  // States with durations; startprob (columns) is spread evenly over the stages of a state.
  Chain(const StageRules& rules, const Eigen::Map<const Vector>& startprob, Way way = Way::best);
  ~Chain();
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  Index n_columns() const { return n_columns_; }  // classes that have evidence
  Index n_states() const;                         // stages, where states have durations
  LiveEngine live() const;

  // Filtered or smoothed posteriors of sequences that stand one after the other, and what else is wanted.
  SequenceStatus infer(Pass pass, const Evidence& evidence, const std::vector<Index>& lengths, int n_threads,
                       const Answers& answers) const;
  // path (N): the most probable one; log_probabilities (sequences) may be null.
  SequenceStatus best_path(const Evidence& evidence, const std::vector<Index>& lengths, int n_threads,
                           std::int64_t* path, double* log_probabilities) const;
  // posteriors (N, C): p(x_t | y_1..y_min(t+lag, T)). Work per frame grows with lag.
  SequenceStatus fixed_lag(const Evidence& evidence, const std::vector<Index>& lengths, Index lag, int n_threads,
                           double* posteriors) const;
  // Multiplications that a first gap of dt steps takes, about.
  Index work_to_reach(std::int64_t dt) const;

 private:
  std::vector<char> in_stretches(Pass pass, const Evidence& evidence, const SequenceStarts& starts, int n_threads,
                                 const Answers& answers) const;

  Index n_columns_;
  std::unique_ptr<ChainFacts> facts_;
  std::unique_ptr<ChainEngine> engine_;
};

}  // namespace drhmm
