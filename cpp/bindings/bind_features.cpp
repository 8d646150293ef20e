#include <pybind11/stl.h>

#include <limits>

#include "drhmm/features/squared_exponential.hpp"
#include "framing.hpp"
#include "released.hpp"

namespace drhmm::bindings {

namespace {

Array frames(const Array& samples, const Lengths& lengths, const Array& mean, const Array& scale, Index window) {
  const ConstRows input = rows(samples, "samples");
  const Framing framing = make_framing(mean, scale, window);
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

}  // namespace

void bind_features(py::module_& module) {
  module.def("frames", &frames, py::arg("samples").noconvert(), py::arg("lengths"), py::arg("mean").noconvert(),
             py::arg("scale").noconvert(), py::arg("window"),
             "Standardised windows of samples, (n, window * d); rows of NaN where a window is incomplete.");
  module.def("squared_exponential", &squared_exponential, py::arg("frames").noconvert(), py::arg("centers").noconvert(),
             py::arg("sigma"), "exp(-|y - c|^2 / (2 sigma^2)), (n, B).");
}

}  // namespace drhmm::bindings
