// The loss of filtering against true states, and its derivatives by reverse mode.
#pragma once

#include <cstdint>

#include "drhmm/types.hpp"

namespace drhmm {

// The loss of one sequence, -sum_t log p(x_t = truth_t | y_1..y_t) over the time steps with truth (T) >= 0.
// evidence: log w (T, S), up to a constant per row; rows with a NaN are missing. A: transmat (S, S), rows contiguous.
// Adds d loss / d evidence to by_evidence (T, S) unless that is null.
//
// Forward: u_t = w_t * (A^T a_t-1), a_t = u_t / sum(u_t). Backward, with g_t = d loss / d a_t:
//   d loss / d log w_t = a_t * (g_t - g_t . a_t),   g_t-1 = A (w_t * (g_t - g_t . a_t)) / c_t + its own share.
double filtering_loss(const ConstRows& evidence, const std::int64_t* truth, const RowMatrix& transmat,
                      const Vector& startprob, double* by_evidence);

}  // namespace drhmm
