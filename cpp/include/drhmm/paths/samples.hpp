// Paths drawn from the posterior: backwards, from filtered posteriors.
#pragma once

#include <cstdint>
#include <vector>

#include "drhmm/types.hpp"

namespace drhmm {

// The transitions into each frame.
struct StepMatrices {
  const double* transposed;   // (K, S, S): entry (k, j, i) is the probability of j after i
  const std::int64_t* which;  // (N) the matrix of each frame; null if there is only one
  Index n_states;

  const double* into(Index frame, Index state) const {
    const Index matrix = which == nullptr ? 0 : static_cast<Index>(which[frame]);
    return transposed + (matrix * n_states + state) * n_states;
  }
};

// States drawn from p(x_1..x_T | y_1..y_T), last one first:
// p(x_t = i | x_{t+1} = j, y) = f_t(i) A_ij / sum_k f_t(k) A_kj with filtered posteriors f.
// Returns false if double underflows.
bool draw_paths(const ConstRows& filtered,  // (N, S)
                const StepMatrices& steps, const std::vector<Index>& lengths,
                const ConstRows& uniforms,  // (n, N) from [0, 1)
                int n_threads,
                std::int64_t* paths);  // (n, N)

}  // namespace drhmm
