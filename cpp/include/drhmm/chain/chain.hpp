// A Markov chain for recursions: built once, never changed, shared by threads. recursion/README.md is a map of them.
// Compiled in cpp/src/chain.cpp.
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

// The recursion to use: the best one, or, for tests, always the same.
enum class Way { best, alone, lanes, scaled };

// The parts of a chain with durations: state i is a row of stages with the same evidence.
struct StageRules {
  RowMatrix leaving;        // (M, M) B_ij: probability of state j after state i is left
  std::vector<Index> size;  // (M) stages of each state
  Vector stay;              // (stages) probability of staying for another step
  Vector leave;             // (M) probability of leaving the last stage of a state
  Vector skip;              // (M) probability of entering a state at its last stage instead of its first
  bool has_unknown = false;
  double rate = 0;  // probability that the unknown begins at a step
  double keep = 0;  // probability that it stays for another step
  Vector back;      // (stages) probability of returning to each stage
};

// Output arrays; null if not wanted.
struct Answers {
  double* posteriors = nullptr;       // (N, C)
  double* counts = nullptr;           // (C, C) += expected transitions
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

  // Filtered or smoothed posteriors of concatenated sequences, and other wanted answers.
  SequenceStatus infer(Pass pass, const Evidence& evidence, const std::vector<Index>& lengths, int n_threads,
                       const Answers& answers) const;
  // path (N): the most probable one; log_probabilities (sequences) may be null.
  SequenceStatus best_path(const Evidence& evidence, const std::vector<Index>& lengths, int n_threads,
                           std::int64_t* path, double* log_probabilities) const;
  // posteriors (N, C): p(x_t | y_1..y_min(t+lag, T)). Work per frame grows with lag.
  SequenceStatus fixed_lag(const Evidence& evidence, const std::vector<Index>& lengths, Index lag, int n_threads,
                           double* posteriors) const;
  // The approximate number of multiplications for a first gap of dt steps.
  Index work_to_reach(std::int64_t dt) const;

 private:
  std::vector<char> in_stretches(Pass pass, const Evidence& evidence, const SequenceStarts& starts, int n_threads,
                                 const Answers& answers) const;

  Index n_columns_;
  std::unique_ptr<ChainFacts> facts_;
  std::unique_ptr<ChainEngine> engine_;
};

}  // namespace drhmm
