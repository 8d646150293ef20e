// Paths from posteriors, and probabilities that sum to 1.
#include <algorithm>
#include <cmath>
#include <limits>

#include "drhmm/chain/probabilities.hpp"
#include "drhmm/paths/samples.hpp"
#include "drhmm/system/interruption.hpp"
#include "drhmm/system/parallel.hpp"

namespace drhmm {

namespace {

// path (T) <- one path at frames begin..begin+T-1; uniform (T).
bool draw_path(const double* filtered, const StepMatrices& steps, Index begin, Index n_frames, const double* uniform,
               std::int64_t* path) {
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
    // Impossible states add nothing, so they never cross the mark.
    const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), uniform[t] * total);
    path[t] = std::min<Index>(found - cumulative.begin(), n - 1);
  }
  return true;
}

}  // namespace

bool draw_paths(const ConstRows& filtered, const StepMatrices& steps, const std::vector<Index>& lengths,
                const ConstRows& uniforms, int n_threads, std::int64_t* paths) {
  std::vector<char> complete(static_cast<std::size_t>(uniforms.rows()), 1);
  parallel_for(uniforms.rows(), n_threads, [&](Index path) {
    Index begin = 0;
    for (const Index length : lengths) {
      const Index place = path * filtered.rows() + begin;
      if (!draw_path(filtered.data(), steps, begin, length, uniforms.data() + place, paths + place)) {
        complete[static_cast<std::size_t>(path)] = 0;
      }
      begin += length;
    }
  });
  return std::find(complete.begin(), complete.end(), 0) == complete.end();
}

bool normalize(const ConstRows& values, double tolerance, Rows normalized) {
  const double rounding = 4 * std::numeric_limits<double>::epsilon() * static_cast<double>(values.cols());
  for (Index i = 0; i < values.rows(); ++i) {
    double sum = 0;
    for (Index j = 0; j < values.cols(); ++j) {
      const double value = values(i, j);
      if (!(value >= 0)) return false;
      sum += value;
    }
    if (!(std::abs(sum - 1) <= tolerance)) return false;
    const double divisor = std::abs(sum - 1) <= rounding ? 1 : sum;
    for (Index j = 0; j < values.cols(); ++j) normalized(i, j) = values(i, j) / divisor;
  }
  return true;
}

}  // namespace drhmm
