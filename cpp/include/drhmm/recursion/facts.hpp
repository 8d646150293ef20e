// Properties of a chain that recursions need.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "drhmm/chain/chain.hpp"
#include "drhmm/chain/powers.hpp"

namespace drhmm {

struct ChainFacts {
  Way way = Way::best;
  Vector start;            // (states)
  double bits = 0;         // -log2 of the smallest positive transition
  bool is_mixing = false;  // every transition is at least 2^-20: one step evens out almost any evidence
  bool can_start_anywhere = false;
  std::unique_ptr<Powers<double>> powers;
  std::unique_ptr<Powers<Scaled>> scaled_powers;

  // (states) log probabilities `steps` steps after the start, without evidence.
  Vector log_start(std::int64_t steps) const {
    std::vector<Scaled> message(start.begin(), start.end()), scratch(message.size());
    scaled_powers->advance<true>(steps, message.data(), scratch.data());
    Vector logs(start.size());
    std::transform(message.begin(), message.end(), logs.begin(), [](const Scaled& x) { return x.log(); });
    return logs;
  }
  bool needs_scaled() const { return way == Way::scaled || (way == Way::best && bits > 60); }
};

}  // namespace drhmm
