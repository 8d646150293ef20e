#include <pybind11/stl.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "arrays.hpp"
#include "drhmm/exponential.hpp"
#include "drhmm/recursion/filter.hpp"
#include "drhmm/recursion/fixed_lag.hpp"
#include "drhmm/recursion/probabilities.hpp"
#include "drhmm/recursion/sequences.hpp"
#include "drhmm/recursion/smooth.hpp"
#include "drhmm/recursion/stretches.hpp"
#include "drhmm/recursion/viterbi.hpp"
#include "released.hpp"
#include "report.hpp"

namespace drhmm::bindings {

namespace {

// Shapes checked once for all recursions.
struct Problem {
  ConstRows log_ratios;
  ConstRows transmat;
  Eigen::Map<const Vector> startprob;
  const std::int64_t* dt = nullptr;
  std::int64_t longest_gap = 1;

  Problem(const Array& evidence, const Array& a, const Array& pi, const Lengths& lengths,
          const std::optional<Steps>& steps)
      : log_ratios(rows(evidence, "log_ratios")), transmat(rows(a, "transmat")), startprob(vector(pi, "startprob")) {
    const Index n_states = log_ratios.cols();
    require(n_states > 0, "log_ratios must have at least one column");
    require(transmat.rows() == n_states && transmat.cols() == n_states, "transmat must be (S, S)");
    require(startprob.size() == n_states, "startprob must be (S)");
    check_lengths(lengths, log_ratios.rows());
    if (steps.has_value() && log_ratios.rows() > 0) {
      dt = checked_steps(*steps, log_ratios.rows());
      longest_gap = *std::max_element(dt, dt + log_ratios.rows());
    }
  }

  EvidenceRows sequence(Index begin, Index length) const {
    return {ConstRows(log_ratios.data() + begin * log_ratios.cols(), length, log_ratios.cols()),
            dt == nullptr ? nullptr : dt + begin};
  }
};

// Runs recursion(rows, chain, posteriors, sequence) over all sequences into one (T, S) array; before that, a pass in
// stretches over all that it can do.
template <class Recursion>
std::pair<Report, Array> posteriors(const Problem& problem, const Lengths& lengths, int n_threads,
                                    std::optional<Pass> pass, const Recursion& recursion) {
  Array output = new_rows(problem.log_ratios.rows(), problem.log_ratios.cols());
  double* const out = output.mutable_data();
  const Index n_states = problem.log_ratios.cols();
  SequenceStatus status;
  {
    const Released released;
    const auto together = [&](const Chain<double>& chain) {
      if (!pass.has_value() || problem.dt != nullptr) return std::vector<char>();
      return in_stretches(*pass, chain, problem.log_ratios.data(), lengths, n_threads, out);
    };
    const auto one = [&](const auto& chain, Index begin, Index length, Index sequence) {
      return recursion(problem.sequence(begin, length), chain, Rows(out + begin * n_states, length, n_states),
                       sequence);
    };
    status =
        for_each_sequence(problem.transmat, problem.startprob, lengths, problem.longest_gap, n_threads, together, one);
  }
  return {report(status), std::move(output)};
}

std::pair<Report, Array> bind_filter(const Array& evidence, const Array& transmat, const Array& startprob,
                                     const Lengths& lengths, int n_threads, const std::optional<Steps>& dt) {
  const Problem problem(evidence, transmat, startprob, lengths, dt);
  return posteriors(
      problem, lengths, n_threads, Pass::filter,
      [](const EvidenceRows& rows, const auto& chain, Rows out, Index) { return filter(rows, chain, out); });
}

std::pair<Report, Array> bind_smooth(const Array& evidence, const Array& transmat, const Array& startprob,
                                     const Lengths& lengths, int n_threads, const std::optional<Steps>& dt) {
  const Problem problem(evidence, transmat, startprob, lengths, dt);
  return posteriors(
      problem, lengths, n_threads, Pass::smooth,
      [](const EvidenceRows& rows, const auto& chain, Rows out, Index) { return smooth(rows, chain, out); });
}

std::pair<Report, Array> bind_fixed_lag(const Array& evidence, const Array& transmat, const Array& startprob,
                                        const Lengths& lengths, Index lag, int n_threads,
                                        const std::optional<Steps>& dt) {
  require(lag >= 0, "lag must not be negative");
  const Problem problem(evidence, transmat, startprob, lengths, dt);
  return posteriors(
      problem, lengths, n_threads, std::nullopt,
      [lag](const EvidenceRows& rows, const auto& chain, Rows out, Index) { return fixed_lag(rows, chain, lag, out); });
}

std::tuple<Report, Array, Array> bind_expectation(const Array& evidence, const Array& transmat, const Array& startprob,
                                                  const Lengths& lengths, int n_threads) {
  const Problem problem(evidence, transmat, startprob, lengths, std::nullopt);
  const Index n_states = problem.log_ratios.cols();
  std::vector<Matrix> counts(lengths.size());
  auto [status, gamma] = posteriors(problem, lengths, n_threads, std::nullopt,
                                    [&](const EvidenceRows& rows, const auto& chain, Rows out, Index sequence) {
                                      Matrix& own = counts[static_cast<std::size_t>(sequence)];
                                      own.setZero(n_states, n_states);
                                      return smooth(rows, chain, out, &own);
                                    });
  Matrix total = Matrix::Zero(n_states, n_states);
  for (const Matrix& own : counts) total += own;
  return {status, std::move(gamma), to_numpy(total)};
}

std::pair<Report, Steps> bind_viterbi(const Array& evidence, const Array& transmat, const Array& startprob,
                                      const Lengths& lengths, int n_threads, const std::optional<Steps>& dt) {
  const Problem problem(evidence, transmat, startprob, lengths, dt);
  Steps output = new_array<std::int64_t>({problem.log_ratios.rows()});
  std::int64_t* const path = output.mutable_data();
  require(problem.startprob.size() <= 65536, "there may be at most 65536 states");
  SequenceStatus status;
  {
    const Released released;
    LogChain log_chain(problem.transmat, problem.startprob);
    if (problem.longest_gap > 1) log_chain.chain.reach(problem.longest_gap);
    status = for_each_sequence(
        problem.transmat, problem.startprob, lengths, problem.longest_gap, n_threads,
        [](const auto&) { return std::vector<char>(); },
        [&](const auto&, Index begin, Index length, Index) {
          return viterbi(problem.sequence(begin, length), log_chain, path + begin);
        });
  }
  return {report(status), std::move(output)};
}

// An array with one dimension is one row.
std::optional<Array> bind_normalized(const Array& values, double tolerance) {
  require(values.ndim() == 1 || values.ndim() == 2, "values must have one or two dimensions");
  require_aligned(values, "values");
  const Index n = values.shape(values.ndim() - 1);
  const Index n_rows = values.ndim() == 1 ? 1 : values.shape(0);
  Array output = values.ndim() == 1 ? new_array<double>({n}) : new_rows(n_rows, n);
  if (!normalize({values.data(), n_rows, n}, tolerance, {output.mutable_data(), n_rows, n})) return std::nullopt;
  return output;
}

}  // namespace

void bind_recursion(py::module_& module) {
  const auto define = [&](const char* name, auto function, const char* text, auto... more) {
    module.def(name, function, py::arg("log_ratios").noconvert(), py::arg("transmat").noconvert(),
               py::arg("startprob").noconvert(), py::arg("lengths"), more..., text);
  };
  const auto threads = py::arg_v("n_threads", 1);
  const auto steps = py::arg_v(py::arg("dt").noconvert(), py::none());
  define("filter", &bind_filter, "p(x_t = i | y_1..y_t).", threads, steps);
  define("smooth", &bind_smooth, "p(x_t = i | y_1..y_T).", threads, steps);
  define("expectation", &bind_expectation, "Smoothed posteriors and expected transition counts.", threads);
  define("viterbi", &bind_viterbi, "The most probable path.", threads, steps);
  define("fixed_lag", &bind_fixed_lag, "p(x_t = i | y_1..y_min(t+lag, T)).", py::arg("lag"), threads, steps);
  module.def("normalized", &bind_normalized, py::arg("values").noconvert(), py::arg("tolerance"),
             "Rows of probabilities divided by their sums; None if a number or a sum is wrong.");
  module.def(
      "exponentials",
      [](const Array& values) {
        Array output(values.size(), values.data());
        double* const data = output.mutable_data();
        const Index n = output.size();
        const Released released;
        exponentials(data, n);
        return output;
      },
      py::arg("values").noconvert(), "e^values for values <= 0, (n); exactly 0 below -708.");
  module.attr("OUTCOMES") = py::make_tuple("ok", "impossible", "partial_nan", "out_of_range", "too_far", "none_known");
}

}  // namespace drhmm::bindings
