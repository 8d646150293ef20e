#pragma once

#include <pybind11/stl.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "complete.hpp"
#include "drhmm/features/context.hpp"
#include "drhmm/features/squared_exponential.hpp"
#include "framing.hpp"
#include "released.hpp"

namespace drhmm::bindings {

namespace {

constexpr Index kLongestWindow = 1 << 20;

Array frames(const Array& samples, const Lengths& lengths, const Array& mean, const Array& scale, Index window,
             Index span) {
  const ConstRows input = rows(samples, "samples");
  const Framing framing = make_framing(mean, scale, window, span);
  require(input.cols() == framing.n_columns(), "samples must have one column per mean");
  check_lengths(lengths, input.rows());
  Array output = new_rows(input.rows(), framing.frame_size());
  Rows out = mutable_rows(output);
  {
    const Released released;
    RowMatrix block;
    std::vector<char> missing;
    FrameReader(framing, input, lengths).read(0, input.rows(), block, missing);
    out = block;
    for (Index t = 0; t < input.rows(); ++t) {
      if (missing[static_cast<std::size_t>(t)]) out.row(t).setConstant(std::numeric_limits<double>::quiet_NaN());
    }
  }
  return output;
}

Array squared_exponential(const Array& frame_array, const Array& centers, double sigma) {
  const ConstRows input = rows(frame_array, "frames");
  const ConstRows center_rows = rows(centers, "centers");
  require(input.cols() == center_rows.cols(), "frames and centers must have the same number of columns");
  require(center_rows.rows() > 0, "centers must not be empty");
  RowMatrix features;
  {
    const Released released;
    SquaredExponential(center_rows, sigma).evaluate(input, features);
  }
  return to_numpy(features);
}

std::shared_ptr<Context> make_context(const Array& mean, const Array& scale, const std::vector<Index>& windows,
                                      Index kinds, const Array& signs, const Array& bias) {
  const Framing framing = make_framing(mean, scale, 1);
  const ConstRows sign_rows = rows(signs, "signs");
  require(framing.n_columns() > 0, "mean must not be empty");
  require(sign_rows.rows() == framing.n_columns() && sign_rows.cols() == Context::kKernels,
          "signs must have one row per column and one column per kernel");
  require((sign_rows.array() == 0 || sign_rows.array().abs() == 1).all() &&
              ((sign_rows.array() != 0).cast<Index>().colwise().sum() <= Context::kMostSummed).all(),
          "signs must be -1, 0 or 1, at most nine of a kernel not 0");
  require(bias.ndim() == 1 && bias.shape(0) == Context::kKernels, "bias must have one entry per kernel");
  require(kinds >= 1 && kinds <= 3, "kinds must be 1, 2 or 3");
  require(!windows.empty() && windows.front() >= 1 && std::is_sorted(windows.begin(), windows.end()) &&
              windows.back() <= kLongestWindow,
          "windows must be positive and in ascending order");
  return std::make_shared<Context>(framing.mean, framing.inverse_scale, windows, kinds, sign_rows,
                                   vector(bias, "bias"));
}

Array context_features(const Context& self, const Array& samples, const Lengths& lengths, Index first, Index count,
                       bool outputs) {
  const ConstRows input = rows(samples, "samples");
  require(input.cols() == self.n_columns(), "samples must have the columns of the context");
  check_lengths(lengths, input.rows());
  require(first >= 0 && count >= 0 && count <= input.rows() && first <= input.rows() - count,
          "first and count must be within samples");
  RowMatrix features;
  {
    const Released released;
    ContextReader(self, input, lengths).read(first, count, features, outputs);
  }
  return to_numpy(features);
}

}  // namespace

inline void bind_features(py::module_& module) {
  py::class_<Context, std::shared_ptr<Context>>(module, "Context", py::module_local(), py::is_final(), complete(),
                                                "Features of the past of a time step: statistics and convolutions.")
      .def(py::init(&make_context), py::kw_only(), py::arg("mean").noconvert(), py::arg("scale").noconvert(),
           py::arg("windows"), py::arg("kinds"), py::arg("signs").noconvert(), py::arg("bias").noconvert())
      .def_property_readonly("history", &Context::history, "Samples, the newest included, that features depend on.")
      .def("features", &context_features, py::arg("samples").noconvert(), py::arg("lengths"), py::arg("first"),
           py::arg("count"), py::arg("outputs") = false,
           "Features of time steps first..first+count-1, (count, F), or the outputs of the kernels, (count, 252).");
  module.def(
      "frames", &frames, py::arg("samples").noconvert(), py::arg("lengths"), py::arg("mean").noconvert(),
      py::arg("scale").noconvert(), py::arg("window"), py::arg("span") = 0,
      "Standardised windows of samples, (n, window * d), and means over the span, (n, d); NaN where incomplete.");
  module.def("squared_exponential", &squared_exponential, py::arg("frames").noconvert(), py::arg("centers").noconvert(),
             py::arg("sigma"), "exp(-|y - c|^2 / (2 sigma^2)), (n, B).");
}

}  // namespace drhmm::bindings
