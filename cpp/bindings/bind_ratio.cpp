#include <pybind11/stl.h>

#include <memory>
#include <utility>

#include "complete.hpp"
#include "drhmm/ratio/cross_validation.hpp"
#include "drhmm/ratio/gram.hpp"
#include "drhmm/ratio/least_squares.hpp"
#include "drhmm/ratio/solve.hpp"
#include "framing.hpp"
#include "released.hpp"

namespace drhmm::bindings {

namespace {

void check_training(const ConstRows& frames, const ConstRows& targets, const Eigen::Map<const Vector>& weights) {
  require(frames.rows() == targets.rows() && frames.rows() == weights.size(),
          "frames, targets and weights must have the same number of rows");
}

void add(GramStatistics& self, const Array& frames, const Array& targets, const Array& weights, const Array& centers,
         double sigma) {
  const ConstRows frame_rows = rows(frames, "frames");
  const ConstRows target_rows = rows(targets, "targets");
  const ConstRows center_rows = rows(centers, "centers");
  const Eigen::Map<const Vector> weight_vector = vector(weights, "weights");
  check_training(frame_rows, target_rows, weight_vector);
  require(frame_rows.cols() == center_rows.cols(), "frames and centers must have the same number of columns");
  require(center_rows.rows() == self.n_centers() && target_rows.cols() == self.n_classes(),
          "centers and targets must have the sizes of the statistics");
  // Whatever stops it half-way, the statistics are those of before or of after.
  GramStatistics added(self.n_centers(), self.n_classes());
  added.add(SquaredExponential(center_rows, sigma), frame_rows, target_rows, weight_vector);
  self.merge(added);
}

std::pair<Array, Array> bind_cross_validate(const Array& frames, const Array& targets, const Array& weights,
                                            const Lengths& fold_sizes, const Array& centers,
                                            const std::vector<double>& sigmas, const std::vector<double>& relative_rhos,
                                            int n_threads, bool with_estimates) {
  const ConstRows frame_rows = rows(frames, "frames");
  const ConstRows target_rows = rows(targets, "targets");
  const ConstRows center_rows = rows(centers, "centers");
  const Eigen::Map<const Vector> weight_vector = vector(weights, "weights");
  check_training(frame_rows, target_rows, weight_vector);
  check_lengths(fold_sizes, frame_rows.rows());
  require(fold_sizes.size() >= 2, "cross-validation needs at least two folds");
  require(center_rows.rows() > 0 && frame_rows.cols() == center_rows.cols(),
          "frames and centers must have the same number of columns");
  Array loss({sigmas.size(), relative_rhos.size(), fold_sizes.size()});
  Array estimates({static_cast<Index>(sigmas.size()), static_cast<Index>(relative_rhos.size()),
                   with_estimates ? target_rows.rows() : 0, target_rows.cols()});
  double* const loss_out = loss.mutable_data();
  double* const estimates_out = with_estimates ? estimates.mutable_data() : nullptr;
  {
    const Released released;
    CrossValidation(frame_rows, target_rows, weight_vector, fold_sizes, relative_rhos)
        .run(center_rows, sigmas, n_threads, loss_out, estimates_out);
  }
  return {std::move(loss), std::move(estimates)};
}

Array moment(const Array& frames, const Array& targets, const Array& centers, double sigma) {
  const ConstRows frame_rows = rows(frames, "frames");
  const ConstRows target_rows = rows(targets, "targets");
  const ConstRows center_rows = rows(centers, "centers");
  require(frame_rows.rows() == target_rows.rows(), "frames and targets must have the same number of rows");
  require(center_rows.rows() > 0 && frame_rows.cols() == center_rows.cols(),
          "frames and centers must have the same number of columns");
  Matrix result;
  {
    const Released released;
    result = feature_moment(SquaredExponential(center_rows, sigma), frame_rows, target_rows);
  }
  return to_numpy(result);
}

LeastSquaresRatio make_ratio(const Array& centers, double sigma, const Array& theta, const Array& prior, double floor,
                             double evidence_scale, const Array& mean, const Array& scale, Index window) {
  const ConstRows center_rows = rows(centers, "centers");
  const ConstRows theta_rows = rows(theta, "theta");
  Framing framing = make_framing(mean, scale, window);
  require(center_rows.rows() > 0 && center_rows.rows() == theta_rows.rows(), "theta must have one row per center");
  require(center_rows.cols() == framing.frame_size(), "centers must have window * d columns");
  require(prior.ndim() == 1 && prior.shape(0) == theta_rows.cols() && theta_rows.cols() > 0,
          "prior must have one entry per column of theta");
  return {std::move(framing), center_rows, sigma, theta_rows, vector(prior, "prior"), floor, evidence_scale};
}

using Evaluate = void (LeastSquaresRatio::*)(const ConstRows&, const Lengths&, int, bool, Rows) const;

Array run(const LeastSquaresRatio& self, Evaluate evaluate, const Array& samples, const Lengths& lengths, int n_threads,
          bool single, Index n_columns) {
  const ConstRows input = rows(samples, "samples");
  require(input.cols() == self.framing().n_columns(), "samples must have the columns the ratio was learned from");
  check_lengths(lengths, input.rows());
  Array output = new_rows(input.rows(), n_columns);
  Rows out = mutable_rows(output);
  {
    const Released released;
    (self.*evaluate)(input, lengths, n_threads, single, out);
  }
  return output;
}

Array estimates(const LeastSquaresRatio& self, const Array& samples, const Lengths& lengths, int n_threads,
                bool single) {
  return run(self, &LeastSquaresRatio::estimates, samples, lengths, n_threads, single, self.n_states());
}

Array log_ratios(const LeastSquaresRatio& self, const Array& samples, const Lengths& lengths, int n_threads,
                 bool with_novelty, bool single) {
  return run(self, &LeastSquaresRatio::log_ratios, samples, lengths, n_threads, single,
             self.n_states() + (with_novelty ? 1 : 0));
}

// Arrays that come out of a pickle may be views of one message: then they begin anywhere, and are copied.
using Aligned = py::array_t<double, py::array::c_style | py::detail::npy_api::NPY_ARRAY_ALIGNED_>;

GramStatistics from_sums(const Aligned& gram_sums, const Aligned& moment_sums, const Aligned& mass_sums) {
  const Array gram(gram_sums), moment(moment_sums), mass(mass_sums);
  const ConstRows gram_rows = rows(gram, "gram"), moment_rows = rows(moment, "moment");
  require(gram_rows.rows() == gram_rows.cols() && moment_rows.rows() == gram_rows.rows() && mass.ndim() == 1 &&
              mass.shape(0) == moment_rows.cols(),
          "gram, moment and mass must have the shapes (B, B), (B, S) and (S)");
  return {gram_rows, moment_rows, vector(mass, "mass")};
}

}  // namespace

void bind_ratio(py::module_& module) {
  const auto no_gil = py::call_guard<Released>();
  py::class_<GramStatistics>(module, "GramStatistics", py::module_local(), py::is_final(), complete(),
                             "Phi^T W Phi, Phi^T W M and 1^T W M, summed over frames; mergeable.")
      .def(py::init([](Index n_centers, Index n_classes) {
             check_size(n_centers, "n_centers");
             check_size(n_classes, "n_classes");
             return GramStatistics(n_centers, n_classes);
           }),
           py::arg("n_centers"), py::arg("n_classes"))
      .def(py::init(&from_sums), py::arg("gram"), py::arg("moment"), py::arg("mass"))
      .def("add", &add, py::arg("frames").noconvert(), py::arg("targets").noconvert(), py::arg("weights").noconvert(),
           py::arg("centers").noconvert(), py::arg("sigma"), no_gil)
      .def("merge", &GramStatistics::merge, py::arg("other"), no_gil)
      .def("__reduce__",
           [](const py::object& self) {
             const py::tuple sums = py::make_tuple(self.attr("gram"), self.attr("moment"), self.attr("mass"));
             return py::make_tuple(py::type::of(self), sums);
           })
      .def_property_readonly("gram", [](const GramStatistics& self) { return to_numpy(self.gram()); })
      .def_property_readonly("moment", [](const GramStatistics& self) { return to_numpy(self.moment()); })
      .def_property_readonly("mass",
                             [](const GramStatistics& self) { return Array(self.mass().size(), self.mass().data()); });
  py::class_<RegularizedGram>(module, "RegularizedGram", py::module_local(), py::is_final(), complete(),
                              "One Cholesky factor of G + rho I for any number of right-hand sides.")
      .def(py::init([](const Array& gram, double rho) {
             const ConstRows input = rows(gram, "gram");
             require(input.rows() == input.cols(), "gram must be square");
             const Released released;
             return RegularizedGram(Matrix(input), rho);
           }),
           py::arg("gram").noconvert(), py::arg("rho"))
      .def(
          "solve",
          [](const RegularizedGram& self, const Array& moment) {
            const ConstRows input = rows(moment, "moment");
            require(input.rows() == self.n_centers(), "moment must have one row per center");
            Matrix theta;
            {
              const Released released;
              theta = self.solve(Matrix(input));
            }
            return to_numpy(theta);
          },
          py::arg("moment").noconvert());
  module.def("feature_moment", &moment, py::arg("frames").noconvert(), py::arg("targets").noconvert(),
             py::arg("centers").noconvert(), py::arg("sigma"), "Phi^T M, (B, S).");
  module.def("cross_validate", &bind_cross_validate, py::arg("frames").noconvert(), py::arg("targets").noconvert(),
             py::arg("weights").noconvert(), py::arg("fold_sizes"), py::arg("centers").noconvert(), py::arg("sigmas"),
             py::arg("relative_rhos"), py::arg("n_threads") = 1, py::arg("with_estimates") = true,
             "Held-out squared loss, (sigmas, rhos, folds), and held-out estimates, (sigmas, rhos, n, S), of folds "
             "that follow one another in frames.");
  py::class_<LeastSquaresRatio, std::shared_ptr<LeastSquaresRatio>>(
      module, "LeastSquaresRatio", py::module_local(), py::is_final(), complete(),
      "Log density ratios between states from least-squares posterior estimates.")
      .def(py::init(&make_ratio), py::kw_only(), py::arg("centers").noconvert(), py::arg("sigma"),
           py::arg("theta").noconvert(), py::arg("prior").noconvert(), py::arg("floor"), py::arg("evidence_scale"),
           py::arg("mean").noconvert(), py::arg("scale").noconvert(), py::arg("window"))
      .def("estimates", &estimates, py::arg("samples").noconvert(), py::arg("lengths"), py::arg("n_threads") = 1,
           py::arg("single") = false, "theta_i^T phi(y), unclipped, (n, S); rows of NaN where a frame is missing.")
      .def("log_ratios", &log_ratios, py::arg("samples").noconvert(), py::arg("lengths"), py::arg("n_threads") = 1,
           py::arg("with_novelty") = false, py::arg("single") = false,
           "log w_i(y), (n, S), and with novelty log w_* as column S; rows of NaN where a frame is missing.");
}

}  // namespace drhmm::bindings
