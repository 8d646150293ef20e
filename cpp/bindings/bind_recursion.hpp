#pragma once

#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "complete.hpp"
#include "drhmm/chain/chain.hpp"
#include "drhmm/chain/probabilities.hpp"
#include "drhmm/paths/samples.hpp"
#include "drhmm/recursion/live_sequence.hpp"
#include "drhmm/system/exponential.hpp"
#include "released.hpp"
#include "report.hpp"

namespace drhmm::bindings {

namespace {

// The chain of a model with durations. Off its diagonal, transmat (S, S) says where a state leads.
StageRules stage_rules(const ConstRows& transmat, const Steps& sizes, const Array& stay, const Array& skip, double rate,
                       double keep, const std::optional<Array>& back) {
  const Index n = transmat.rows();
  require(n <= Chain::kMostWithDurations, "there may be at most 128 states with durations");
  require(sizes.ndim() == 1 && sizes.shape(0) == n, "sizes must be (S)");
  StageRules rules;
  rules.leaving = transmat;
  rules.leave.resize(n);
  for (Index i = 0; i < n; ++i) {
    require(sizes.at(i) >= 1 && sizes.at(i) <= 65536, "sizes must be from 1 to 65536");
    rules.size.push_back(sizes.at(i));
    rules.leaving(i, i) = 0;
    const double away = rules.leaving.row(i).sum();
    if (away > 0) rules.leaving.row(i) /= away;
    rules.leave[i] = away;  // for a single stage; 1 - stay would lose digits
  }
  Index n_stages = 0;
  for (const Index size : rules.size) n_stages += size;
  rules.stay = vector(stay, "stay");
  rules.skip = vector(skip, "skip");
  require(rules.stay.size() == n_stages, "stay must have one entry per stage");
  require(rules.skip.size() == n, "skip must be (S)");
  const auto are_probabilities = [](const Vector& p) { return ((p.array() >= 0) && (p.array() <= 1)).all(); };
  require(are_probabilities(rules.stay) && are_probabilities(rules.skip), "stay and skip must be probabilities");
  Index last = -1;
  for (Index i = 0; i < n; ++i) {
    last += rules.size[static_cast<std::size_t>(i)];
    if (rules.size[static_cast<std::size_t>(i)] > 1) rules.leave[i] = 1 - rules.stay[last];
  }
  if (back.has_value()) {
    rules.has_unknown = true;
    rules.rate = rate;
    rules.keep = keep;
    rules.back = vector(*back, "back");
    require(rules.back.size() == n_stages && are_probabilities(rules.back), "back must have one entry per stage");
  }
  return rules;
}

std::shared_ptr<Chain> make_chain(const Array& transmat, const Array& startprob, const std::optional<Steps>& sizes,
                                  const std::optional<Array>& stay, const std::optional<Array>& skip, double rate,
                                  double keep, const std::optional<Array>& back, const std::string& way_name) {
  const ConstRows a = rows(transmat, "transmat");
  static const char* const kWays[] = {"best", "alone", "lanes", "scaled"};
  const auto found = std::find(std::begin(kWays), std::end(kWays), way_name);
  require(found != std::end(kWays), "way must be best, alone, lanes or scaled");
  const auto way = static_cast<Way>(found - std::begin(kWays));
  const Eigen::Map<const Vector> pi = vector(startprob, "startprob");
  require(pi.size() > 0 && a.rows() == a.cols(), "transmat must be (S, S)");
  if (!sizes.has_value()) {
    require(a.rows() == pi.size(), "startprob must be (S)");
    return std::make_shared<Chain>(a, pi, way);
  }
  require(stay.has_value() && skip.has_value(), "sizes need stay and skip");
  const StageRules rules = stage_rules(a, *sizes, *stay, *skip, rate, keep, back);
  require(pi.size() == a.rows() + (rules.has_unknown ? 1 : 0), "startprob must have one entry per state");
  return std::make_shared<Chain>(rules, pi, way);
}

// Checks the shapes once for all recursions.
struct Problem {
  Evidence evidence;
  Index n_frames;

  Problem(const Chain& chain, const Array& log_ratios, const Lengths& lengths, const std::optional<Steps>& dt)
      : evidence{rows(log_ratios, "log_ratios").data(), chain.n_columns()}, n_frames(log_ratios.shape(0)) {
    require(log_ratios.shape(1) == chain.n_columns(), "log_ratios must have one column per state of the chain");
    check_lengths(lengths, n_frames);
    if (dt.has_value() && n_frames > 0) {
      const std::int64_t* const steps = checked_steps(*dt, n_frames);
      if (std::any_of(steps, steps + n_frames, [](std::int64_t one) { return one > 1; })) evidence.dt = steps;
    }
  }
};

std::pair<Report, Array> infer(Pass pass, const Chain& chain, const Array& log_ratios, const Lengths& lengths,
                               int n_threads, const std::optional<Steps>& dt) {
  const Problem problem(chain, log_ratios, lengths, dt);
  Array output = new_rows(problem.n_frames, chain.n_columns());
  Answers answers;
  answers.posteriors = output.mutable_data();
  const bool is_long = dt.has_value() || problem.n_frames * chain.n_states() * chain.n_states() >= kWorthReleasing;
  const SequenceStatus status = without_gil_if<Released>(
      is_long, [&] { return chain.infer(pass, problem.evidence, lengths, n_threads, answers); });
  return {report(status), std::move(output)};
}

std::pair<Report, Array> bind_filter(const Chain& chain, const Array& log_ratios, const Lengths& lengths, int n_threads,
                                     const std::optional<Steps>& dt) {
  return infer(Pass::filter, chain, log_ratios, lengths, n_threads, dt);
}

std::pair<Report, Array> bind_smooth(const Chain& chain, const Array& log_ratios, const Lengths& lengths, int n_threads,
                                     const std::optional<Steps>& dt) {
  return infer(Pass::smooth, chain, log_ratios, lengths, n_threads, dt);
}

std::pair<Report, Array> bind_log_likelihood(const Chain& chain, const Array& log_ratios, const Lengths& lengths,
                                             int n_threads, const std::optional<Steps>& dt) {
  const Problem problem(chain, log_ratios, lengths, dt);
  Array output(static_cast<Index>(lengths.size()));
  Answers answers;
  answers.log_likelihoods = output.mutable_data();
  SequenceStatus status;
  {
    const Released released;
    status = chain.infer(Pass::filter, problem.evidence, lengths, n_threads, answers);
  }
  return {report(status), std::move(output)};
}

std::tuple<Report, Array, Array, Array> bind_expectation(const Chain& chain, const Array& log_ratios,
                                                         const Lengths& lengths, int n_threads) {
  const Problem problem(chain, log_ratios, lengths, std::nullopt);
  Array gamma = new_rows(problem.n_frames, chain.n_columns());
  Array likelihoods(static_cast<Index>(lengths.size()));
  Matrix counts = Matrix::Zero(chain.n_columns(), chain.n_columns());
  RowMatrix sums = counts;
  const Answers answers{gamma.mutable_data(), sums.data(), likelihoods.mutable_data()};
  SequenceStatus status;
  {
    const Released released;
    status = chain.infer(Pass::smooth, problem.evidence, lengths, n_threads, answers);
  }
  return {report(status), std::move(gamma), to_numpy(sums), std::move(likelihoods)};
}

std::tuple<Report, Steps, Array> bind_viterbi(const Chain& chain, const Array& log_ratios, const Lengths& lengths,
                                              int n_threads, const std::optional<Steps>& dt) {
  const Problem problem(chain, log_ratios, lengths, dt);
  require(chain.n_states() <= 65536, "there may be at most 65536 states");
  Steps path = new_array<std::int64_t>({problem.n_frames});
  Array log_probabilities(static_cast<Index>(lengths.size()));
  std::int64_t* const out = path.mutable_data();
  double* const probabilities = log_probabilities.mutable_data();
  SequenceStatus status;
  {
    const Released released;
    status = chain.best_path(problem.evidence, lengths, n_threads, out, probabilities);
  }
  return {report(status), std::move(path), std::move(log_probabilities)};
}

std::pair<Report, Array> bind_fixed_lag(const Chain& chain, const Array& log_ratios, const Lengths& lengths, Index lag,
                                        int n_threads, const std::optional<Steps>& dt) {
  require(lag >= 0, "lag must not be negative");
  const Problem problem(chain, log_ratios, lengths, dt);
  Array output = new_rows(problem.n_frames, chain.n_columns());
  double* const out = output.mutable_data();
  SequenceStatus status;
  {
    const Released released;
    status = lag == 0 ? chain.infer(Pass::filter, problem.evidence, lengths, n_threads, {out})
                      : chain.fixed_lag(problem.evidence, lengths, lag, n_threads, out);
  }
  return {report(status), std::move(output)};
}

// transposed (K, S, S) as rows (K S, S); which (N) or None; uniforms (n, N). None if double underflows.
std::optional<Steps> bind_draw_paths(const Array& filtered, const Array& transposed, const std::optional<Steps>& which,
                                     const Lengths& lengths, const Array& uniforms, int n_threads) {
  const ConstRows posteriors = rows(filtered, "filtered"), matrices = rows(transposed, "transposed"),
                  numbers = rows(uniforms, "uniforms");
  const Index n_frames = posteriors.rows(), n = posteriors.cols(), n_paths = numbers.rows();
  require(n > 0 && matrices.cols() == n && matrices.rows() >= n && matrices.rows() % n == 0,
          "transposed must be rows of (K, S, S)");
  require(numbers.cols() == n_frames, "uniforms must be (n, N)");
  check_lengths(lengths, n_frames);
  StepMatrices steps{matrices.data(), nullptr, n};
  if (which.has_value()) {
    require(which->ndim() == 1 && which->shape(0) == n_frames, "which must be (N)");
    steps.which = which->data();
    const std::int64_t n_matrices = matrices.rows() / n;
    require(std::all_of(steps.which, steps.which + n_frames, [&](std::int64_t k) { return k >= 0 && k < n_matrices; }),
            "which must be from 0 to K - 1");
  }
  Steps paths = new_array<std::int64_t>({n_paths, n_frames});
  std::int64_t* const out = paths.mutable_data();
  bool is_complete;
  {
    const Released released;
    is_complete = draw_paths(posteriors, steps, lengths, numbers, n_threads, out);
  }
  if (!is_complete) return std::nullopt;
  return paths;
}

// The last row of each sequence in evidence (T, >= S) += weights (S); a row of NaN counts as zeros.
void add_at_ends(Array evidence, const Lengths& lengths, const Array& weights) {
  const Eigen::Map<const Vector> own = vector(weights, "end_weights");
  rows(evidence, "evidence");
  Rows out = mutable_rows(evidence);
  check_lengths(lengths, out.rows());
  require(own.size() <= out.cols(), "end_weights must have one entry per state");
  Index end = 0;
  for (const Index length : lengths) {
    auto row = out.row((end += length) - 1);
    if (std::isnan(row[0])) row.setZero();
    for (Index i = 0; i < own.size(); ++i) row[i] += own[i];
  }
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

inline void bind_recursion(py::module_& module) {
  py::class_<Chain, std::shared_ptr<Chain>>(module, "Chain", py::module_local(), py::is_final(), complete(),
                                            "A Markov chain, with durations if sizes are given; never changes.")
      .def(py::init(&make_chain), py::arg("transmat").noconvert(), py::arg("startprob").noconvert(),
           py::arg("sizes").noconvert() = py::none(), py::arg("stay").noconvert() = py::none(),
           py::arg("skip").noconvert() = py::none(), py::arg("rate") = 0.0, py::arg("keep") = 0.0,
           py::arg("back").noconvert() = py::none(), py::arg("way") = "best")
      .def_property_readonly("n_columns", &Chain::n_columns)
      .def_property_readonly("n_states", &Chain::n_states);
  const auto define = [&](const char* name, auto function, const char* text, auto... more) {
    module.def(name, function, py::arg("chain"), py::arg("log_ratios").noconvert(), py::arg("lengths"), more..., text);
  };
  const auto threads = py::arg_v("n_threads", 1);
  const auto steps = py::arg_v(py::arg("dt").noconvert(), py::none());
  define("filter", &bind_filter, "p(x_t = i | y_1..y_t).", threads, steps);
  define("smooth", &bind_smooth, "p(x_t = i | y_1..y_T).", threads, steps);
  define("log_likelihood", &bind_log_likelihood, "log of the sum over all paths, for each sequence.", threads, steps);
  define("expectation", &bind_expectation, "Smoothed posteriors, expected transition counts, log likelihoods.",
         threads);
  define("viterbi", &bind_viterbi, "The most probable path, and its log probability for each sequence.", threads,
         steps);
  define("fixed_lag", &bind_fixed_lag, "p(x_t = i | y_1..y_min(t+lag, T)).", py::arg("lag"), threads, steps);
  module.def("draw_paths", &bind_draw_paths, py::arg("filtered").noconvert(), py::arg("transposed").noconvert(),
             py::arg("which").noconvert(), py::arg("lengths"), py::arg("uniforms").noconvert(),
             py::arg("n_threads") = 1, "Paths from the posterior, (n, N); None if double holds too little for them.");
  module.def("add_at_ends", &add_at_ends, py::arg("evidence").noconvert(), py::arg("lengths"),
             py::arg("end_weights").noconvert(), "Adds weights to the last row of each sequence, in place.");
  module.def(
      "first_infinite",
      [](const Array& values) {
        const double* const found =
            std::find_if(values.data(), values.data() + values.size(), [](double value) { return std::isinf(value); });
        return found == values.data() + values.size() ? Index{-1} : found - values.data();
      },
      py::arg("values").noconvert(), "The place of the first infinite number in the flat array, -1 without one.");
  module.def("normalized", &bind_normalized, py::arg("values").noconvert(), py::arg("tolerance"),
             "Rows of probabilities divided by their sums; None if a number or a sum is wrong.");
  module.def(
      "exponentials",
      [](const Array& values) {
        Array output(values.size(), values.data());
        double* const data = output.mutable_data();
        const Index n = output.size();
        const Released released;
        many_exponentials(data, n);
        return output;
      },
      py::arg("values").noconvert(), "e^values for values <= 0, (n); exactly 0 below -708.");
  module.attr("OUTCOMES") = py::make_tuple("ok", "impossible", "partial_nan", "too_far", "none_known");
}

}  // namespace drhmm::bindings
