#pragma once

#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "arrays.hpp"
#include "drhmm/learning/filtering_loss.hpp"
#include "drhmm/learning/smoothing_loss.hpp"
#include "released.hpp"

namespace drhmm::bindings {

namespace {

void check_loss(const ConstRows& evidence, const Steps& codes, const ConstRows& transitions, Index start_size,
                const Lengths& lengths) {
  const Index n = evidence.rows(), s = evidence.cols();
  require_aligned(codes, "codes");
  require(s > 0 && transitions.rows() == s && transitions.cols() == s && start_size == s,
          "transitions and start must have one entry per column of evidence");
  require(codes.ndim() == 1 && codes.shape(0) == n, "codes must have one entry per row of evidence");
  require(std::all_of(codes.data(), codes.data() + n, [s](std::int64_t code) { return code < s; }),
          "codes must be columns of evidence, or negative");
  check_lengths(lengths, n);
}

std::pair<double, Array> bind_filtering_loss(const Array& evidence, const Steps& codes, const Array& transmat,
                                             const Array& startprob, const Lengths& lengths, bool with_gradient) {
  const ConstRows evidence_rows = rows(evidence, "evidence"), transition_rows = rows(transmat, "transmat");
  const Eigen::Map<const Vector> start = vector(startprob, "startprob");
  check_loss(evidence_rows, codes, transition_rows, start.size(), lengths);
  const Index s = evidence_rows.cols();
  Array by_evidence = new_rows(with_gradient ? evidence_rows.rows() : 0, s);
  double* const out = by_evidence.mutable_data();
  double loss = 0;
  {
    const Released released;
    std::fill(out, out + by_evidence.size(), 0.0);
    Index first = 0;
    for (const Index length : lengths) {
      loss += filtering_loss({evidence_rows.data() + first * s, length, s}, codes.data() + first, transition_rows,
                             start, with_gradient ? out + first * s : nullptr);
      first += length;
    }
  }
  return {loss, by_evidence};
}

std::tuple<double, Array, Array, Array> smoothing_loss(const Array& evidence, const Steps& codes,
                                                       const Array& transitions, const Array& start,
                                                       const Lengths& lengths, bool with_gradient, int n_threads) {
  const ConstRows evidence_rows = rows(evidence, "evidence"), transition_rows = rows(transitions, "transitions");
  const Eigen::Map<const Vector> start_vector = vector(start, "start");
  const Index n = evidence_rows.rows(), s = evidence_rows.cols();
  check_loss(evidence_rows, codes, transition_rows, start_vector.size(), lengths);
  Array by_evidence = new_rows(with_gradient ? n : 0, s);
  double* const out = with_gradient ? by_evidence.mutable_data() : nullptr;
  SmoothingGradient result;
  {
    const Released released;
    result = SmoothingGradient::of(evidence_rows, codes.data(), lengths, transition_rows, start_vector, n_threads, out);
  }
  return {result.loss, by_evidence, to_numpy(result.by_transitions), Array(s, result.by_start.data())};
}

}  // namespace

inline void bind_gradient(py::module_& module) {
  module.def("smoothing_loss", &smoothing_loss, py::arg("evidence").noconvert(), py::arg("codes").noconvert(),
             py::arg("transitions").noconvert(), py::arg("start").noconvert(), py::arg("lengths"),
             py::arg("with_gradient") = true, py::arg("n_threads") = 1,
             "-sum_t log gamma_t(x_t) over frames with a code that is not negative, and its derivatives by evidence "
             "(T, S) and by the logarithms of transitions (S, S) and start (S).");
  module.def("filtering_loss", &bind_filtering_loss, py::arg("evidence").noconvert(), py::arg("codes").noconvert(),
             py::arg("transmat").noconvert(), py::arg("startprob").noconvert(), py::arg("lengths"),
             py::arg("with_gradient") = true,
             "-sum_t log p(x_t | y_1..y_t) over frames with a code that is not negative, and its derivatives by "
             "evidence (T, S).");
}

}  // namespace drhmm::bindings
