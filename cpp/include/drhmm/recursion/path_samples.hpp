// Paths drawn from the posterior: backwards, from filtered posteriors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "drhmm/interruption.hpp"
#include "drhmm/recursion/evidence.hpp"

namespace drhmm {

// What leads from the frame before to each frame. transposed (K, S, S): K matrices, entry (k, j, i) is the probability
// of j after i; which (N): the matrix of each frame, null if there is one only.
struct StepMatrices {
  const double* transposed;
  const std::int64_t* which;
  Index n_states;

  const double* into(Index frame, Index state) const {
    const Index matrix = which == nullptr ? 0 : static_cast<Index>(which[frame]);
    return transposed + (matrix * n_states + state) * n_states;
  }
};

// path (T) <- states drawn from p(x_1..x_T | y_1..y_T), last one first:
// p(x_t = i | x_{t+1} = j, y) = f_t(i) A_ij / sum_k f_t(k) A_kj with filtered posteriors f.
// filtered (N, S), uniform (T) from [0, 1): frames begin..begin+T. False if double holds too little of what is needed.
inline bool draw_path(const double* filtered, const StepMatrices& steps, Index begin, Index n_frames,
                      const double* uniform, std::int64_t* path) {
  constexpr double kTooLittle = 1e-100;  // posteriors are exact to 1e-111
  const Index n = steps.n_states;
  std::vector<double> cumulative(static_cast<std::size_t>(n));
  for (Index t = n_frames - 1; t >= 0; --t) {
    if (t % kFramesBetweenChecks == 0) check_interruption();
    const double* const row = filtered + (begin + t) * n;
    const double* const into = t + 1 < n_frames ? steps.into(begin + t + 1, path[t + 1]) : nullptr;
    double total = 0;
    for (Index i = 0; i < n; ++i) {
      total += into == nullptr ? row[i] : row[i] * into[i];
      cumulative[static_cast<std::size_t>(i)] = total;
    }
    if (!(total >= kTooLittle)) return false;
    // Above 0 where a state is possible: an impossible one adds nothing, and is never the first above the mark.
    const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), uniform[t] * total);
    path[t] = std::min<Index>(found - cumulative.begin(), n - 1);
  }
  return true;
}

}  // namespace drhmm
