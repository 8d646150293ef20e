#pragma once

#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "complete.hpp"
#include "drhmm/ratio/cross_validation.hpp"
#include "drhmm/ratio/gram.hpp"
#include "drhmm/ratio/pooled_ratio.hpp"
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
  // If it is interrupted, the statistics are the old ones or the new ones, never a mixture.
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

using KernelArrays = std::tuple<Array, double, Array, double>;
using AdditiveArrays = std::tuple<Array, Array, Array, Array, Array, Array, double>;
using GaussianArrays = std::tuple<Array, Array, Array, Array, double>;
using RidgeArrays = std::tuple<Array, Array, Array, Array, double>;  // center, spread, intercept, coefficients, scale

void require_shape(const Array& values, Index n_rows, Index n_columns, const char* name) {
  const ConstRows given = rows(values, name);
  if (given.rows() != n_rows || given.cols() != n_columns) {
    throw std::invalid_argument(std::string(name) + " must have the shape (" + std::to_string(n_rows) + ", " +
                                std::to_string(n_columns) + ")");
  }
}

void require_size(const Array& values, Index size, const char* name) {
  if (vector(values, name).size() != size) {
    throw std::invalid_argument(std::string(name) + " must have the size " + std::to_string(size));
  }
}

std::optional<PoolMember<KernelEstimate>> kernel_member(const std::optional<KernelArrays>& arrays, Index d, Index s) {
  if (!arrays) return std::nullopt;
  const auto& [centers, sigma, theta, scale] = *arrays;
  const ConstRows center_rows = rows(centers, "centers");
  require(center_rows.rows() > 0, "centers must not be empty");
  require_shape(centers, center_rows.rows(), d, "centers");
  require_shape(theta, center_rows.rows(), s, "theta");
  const Matrix coefficients = rows(theta, "theta");
  return PoolMember<KernelEstimate>{{{center_rows, sigma, coefficients}, {center_rows, sigma, coefficients}}, scale};
}

std::optional<PoolMember<AdditiveTables>> additive_member(const std::optional<AdditiveArrays>& arrays, Index d,
                                                          Index s) {
  if (!arrays) return std::nullopt;
  const auto& [low, high, edges, intercept, slopes, steps, scale] = *arrays;
  require_size(low, d, "low");
  require_size(high, d, "high");
  require_shape(edges, d, AdditiveTables::kEdges, "edges");
  require_size(intercept, s, "intercept");
  require_shape(slopes, d, s, "slopes");
  require_shape(steps, d * AdditiveTables::kBins, s, "steps");
  return PoolMember<AdditiveTables>{{vector(low, "low"), vector(high, "high"), rows(edges, "edges"),
                                     vector(intercept, "intercept"), rows(slopes, "slopes"), rows(steps, "steps")},
                                    scale};
}

std::optional<PoolMember<ClassGaussians>> gaussian_member(const std::optional<GaussianArrays>& arrays, Index d,
                                                          Index s) {
  if (!arrays) return std::nullopt;
  const auto& [origin, means, whitening, log_scales, scale] = *arrays;
  require_size(origin, d, "origin");
  require_shape(means, s, d, "means");
  const ConstRows whitening_rows = rows(whitening, "whitening");
  const Index block = whitening_rows.cols();
  require(
      whitening_rows.rows() == s * d && (block == d || (0 < block && block < d && block % ClassGaussians::kRows == 0)),
      "whitening must have a row for each column of each state, and a column for each of a block");
  require_size(log_scales, s, "log_scales");
  return PoolMember<ClassGaussians>{
      {vector(origin, "origin"), rows(means, "means"), whitening_rows, vector(log_scales, "log_scales")}, scale};
}

void check_ridge(const RidgeArrays& arrays, Index f, Index s) {
  const auto& [center, spread, intercept, coefficients, scale] = arrays;
  require_size(center, f, "center");
  require_size(spread, f, "spread");
  require_size(intercept, s, "intercept");
  require_shape(coefficients, f, s, "coefficients");
}

std::optional<ContextMembers> context_members(std::shared_ptr<Context> context, const std::optional<RidgeArrays>& now,
                                              const std::optional<RidgeArrays>& ahead, Index d, Index s) {
  if (context == nullptr) return std::nullopt;
  require(context->n_columns() == d, "context must have the columns of a sample");
  require(now.has_value(), "a context needs a member that reads it");
  check_ridge(*now, context->size(), s);
  const auto& [center, spread, intercept, coefficients, scale] = *now;
  const Vector centers = vector(center, "center"), spreads = vector(spread, "spread");
  ContextMembers members{context,
                         {centers, spreads, vector(intercept, "intercept"), rows(coefficients, "coefficients")},
                         scale,
                         std::nullopt,
                         0.0};
  if (!ahead) return members;
  check_ridge(*ahead, context->size(), s);
  const auto& [same_center, same_spread, later_intercept, later, ahead_scale] = *ahead;
  require(vector(same_center, "center") == centers && vector(same_spread, "spread") == spreads,
          "the members of a context must have the same center and spread");
  Vector intercepts(2 * s);
  intercepts << vector(intercept, "intercept"), vector(later_intercept, "intercept");
  RowMatrix all(context->size(), 2 * s);
  all << rows(coefficients, "coefficients"), rows(later, "coefficients");
  members.both.emplace(centers, spreads, intercepts, all);
  members.ahead_scale = ahead_scale;
  return members;
}

using TableArrays = std::tuple<Array, Array, double, double>;

ScoreTable score_table(const TableArrays& arrays) {
  const auto& [knots, pvalues, shape, spread] = arrays;
  require(knots.ndim() == 1 && knots.shape(0) > 0, "knots must not be empty");
  require_size(pvalues, knots.shape(0), "pvalues");
  require(shape >= 0 && spread > 0, "a tail must have a shape of at least 0 and a positive spread");
  return {vector(knots, "knots"), vector(pvalues, "pvalues"), shape, spread};
}

std::shared_ptr<NoveltyEvidence> make_novelty(const Array& shares, const GaussianArrays& gaussians, const Array& origin,
                                              const Array& whitening, const Array& centers, const Array& weights,
                                              double width, const std::array<TableArrays, 2>& tables,
                                              const std::array<double, 2>& scales, double joint) {
  const Index d = vector(origin, "origin").size(), s = vector(shares, "shares").size();
  require(d > 0 && s > 0, "origin and shares must not be empty");
  require_shape(whitening, d, d, "whitening");
  const ConstRows center_rows = rows(centers, "centers");
  require(center_rows.rows() > 0, "centers must not be empty");
  require_shape(centers, center_rows.rows(), d, "centers");
  require_size(weights, center_rows.rows(), "weights");
  require(width > 0, "width must be positive");
  return std::make_shared<NoveltyEvidence>(
      gaussian_member(gaussians, d, s)->estimate, vector(shares, "shares"), vector(origin, "origin"),
      rows(whitening, "whitening"), KernelExpansion<double>(center_rows, width, Matrix(vector(weights, "weights"))),
      std::array<ScoreTable, 2>{score_table(tables[0]), score_table(tables[1])}, scales, joint);
}

ConstRows novelty_frames(const NoveltyEvidence& self, const Array& frames) {
  const ConstRows input = rows(frames, "frames");
  require(input.cols() == self.frame_size(), "frames must have the columns the evidence was learned from");
  return input;
}

Array novelty_scores(const NoveltyEvidence& self, const Array& frames, int n_threads) {
  const ConstRows input = novelty_frames(self, frames);
  RowMatrix scores;
  {
    const Released released;
    scores = self.scores_of(input, n_threads);
  }
  return to_numpy(scores);
}

Array novelty_log_evidence(const NoveltyEvidence& self, const Array& frames, int n_threads) {
  const ConstRows input = novelty_frames(self, frames);
  Vector evidence;
  {
    const Released released;
    evidence = self.log_evidence_of(input, n_threads);
  }
  return Array(evidence.size(), evidence.data());
}

PooledRatio make_ratio(const Array& mean, const Array& scale, Index window, Index span, const Array& prior,
                       double least_ratio, double floor, const Array& shift, const std::optional<KernelArrays>& kernels,
                       const std::optional<AdditiveArrays>& additive, const std::optional<GaussianArrays>& gaussians,
                       std::shared_ptr<NoveltyEvidence> novelty, std::shared_ptr<NoveltyEvidence> trend,
                       std::shared_ptr<Context> context_features, const std::optional<RidgeArrays>& context,
                       const std::optional<RidgeArrays>& ahead) {
  Framing framing = make_framing(mean, scale, window, span);
  const Index d = framing.window_size(), s = vector(prior, "prior").size();
  require(d > 0 && s > 0, "mean and prior must not be empty");
  require_size(shift, s, "shift");
  require(novelty == nullptr || (novelty->frame_size() == d && novelty->n_states() == s),
          "novelty must have the states and the frames of the ratio");
  require((trend != nullptr) == (span > 0) && (trend == nullptr || (novelty != nullptr && trend->n_states() == s &&
                                                                    trend->frame_size() == framing.frame_size())),
          "trend must have the states and the frames with running means of the ratio");
  const Index n_columns = framing.n_columns();
  return {std::move(framing),
          vector(prior, "prior"),
          least_ratio,
          floor,
          vector(shift, "shift"),
          kernel_member(kernels, d, s),
          additive_member(additive, d, s),
          gaussian_member(gaussians, d, s),
          std::move(novelty),
          std::move(trend),
          context_members(std::move(context_features), context, ahead, n_columns, s)};
}

using Evaluate = void (PooledRatio::*)(const ConstRows&, const Lengths&, int, bool, Rows) const;

Array run(const PooledRatio& self, Evaluate evaluate, const Array& samples, const Lengths& lengths, int n_threads,
          bool single, Index n_columns) {
  const ConstRows input = rows(samples, "samples");
  require(input.cols() == self.framing().n_columns(), "samples must have the columns the ratio was learned from");
  check_lengths(lengths, input.rows());
  Array output = new_rows(input.rows(), n_columns);
  Rows out = mutable_rows(output);
  without_gil_if<Released>(input.rows() * self.work_per_frame() >= kWorthReleasing,
                           [&] { (self.*evaluate)(input, lengths, n_threads, single, out); });
  return output;
}

Array estimates(const PooledRatio& self, const Array& samples, const Lengths& lengths, int n_threads, bool single) {
  require(self.has_kernels(), "there are no kernels whose estimates these are");
  return run(self, &PooledRatio::estimates, samples, lengths, n_threads, single, self.n_states());
}

Array log_ratios(const PooledRatio& self, const Array& samples, const Lengths& lengths, int n_threads,
                 bool with_novelty, bool single) {
  require(self.sees_novelty() || !with_novelty, "novelty needs evidence of its own, or kernels");
  return run(self, &PooledRatio::log_ratios, samples, lengths, n_threads, single,
             self.n_states() + (with_novelty ? 1 : 0));
}

// Arrays from a pickle may be views of one message. These can be misaligned, so they are copied.
using Aligned = py::array_t<double, int{py::array::c_style} | int{py::detail::npy_api::NPY_ARRAY_ALIGNED_}>;

GramStatistics from_sums(const Aligned& gram_sums, const Aligned& moment_sums, const Aligned& mass_sums) {
  const Array gram(gram_sums), moment(moment_sums), mass(mass_sums);
  const ConstRows gram_rows = rows(gram, "gram"), moment_rows = rows(moment, "moment");
  require(gram_rows.rows() == gram_rows.cols() && moment_rows.rows() == gram_rows.rows() && mass.ndim() == 1 &&
              mass.shape(0) == moment_rows.cols(),
          "gram, moment and mass must have the shapes (B, B), (B, S) and (S)");
  return {gram_rows, moment_rows, vector(mass, "mass")};
}

}  // namespace

inline void bind_ratio(py::module_& module) {
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
  module.def(
      "log_e",
      [](const TableArrays& table, const Array& scores) {
        const ScoreTable own = score_table(table);
        const Vector values = vector(scores, "scores");
        const Vector logs = values.unaryExpr([&](double score) { return own.log_e(score); });
        return Array(logs.size(), logs.data());
      },
      py::arg("table"), py::arg("scores").noconvert(), "log e(p) of scores, by the table of their p-values.");
  py::class_<NoveltyEvidence, std::shared_ptr<NoveltyEvidence>>(
      module, "NoveltyEvidence", py::module_local(), py::is_final(), complete(),
      "Evidence for the unknown: scores of frames, their p-values among normal frames, and e-values.")
      .def(py::init(&make_novelty), py::kw_only(), py::arg("shares").noconvert(), py::arg("gaussians"),
           py::arg("origin").noconvert(), py::arg("whitening").noconvert(), py::arg("centers").noconvert(),
           py::arg("weights").noconvert(), py::arg("width"), py::arg("tables"), py::arg("scales"), py::arg("joint"))
      .def("scores", &novelty_scores, py::arg("frames").noconvert(), py::arg("n_threads") = 1,
           "Minus the log densities of the Gaussians and of the kernels, (n, 2).")
      .def("log_evidence", &novelty_log_evidence, py::arg("frames").noconvert(), py::arg("n_threads") = 1,
           "log w_* of frames, (n).");
  py::class_<PooledRatio, std::shared_ptr<PooledRatio>>(
      module, "PooledRatio", py::module_local(), py::is_final(), complete(),
      "Log density ratios between states: a pool of kernel, additive and Gaussian estimates.")
      .def(py::init(&make_ratio), py::kw_only(), py::arg("mean").noconvert(), py::arg("scale").noconvert(),
           py::arg("window"), py::arg("span"), py::arg("prior").noconvert(), py::arg("least_ratio"), py::arg("floor"),
           py::arg("shift").noconvert(), py::arg("kernel") = py::none(), py::arg("additive") = py::none(),
           py::arg("gaussian") = py::none(), py::arg("novelty") = py::none(), py::arg("trend") = py::none(),
           py::arg("context_features") = py::none(), py::arg("context") = py::none(), py::arg("ahead") = py::none())
      .def("estimates", &estimates, py::arg("samples").noconvert(), py::arg("lengths"), py::arg("n_threads") = 1,
           py::arg("single") = false,
           "theta_i^T phi(y) of the kernels, unclipped, (n, S); rows of NaN where a frame is missing.")
      .def("log_ratios", &log_ratios, py::arg("samples").noconvert(), py::arg("lengths"), py::arg("n_threads") = 1,
           py::arg("with_novelty") = false, py::arg("single") = false,
           "log w_i(y), (n, S), and with novelty log w_* as column S; rows of NaN where a frame is missing.");
}

}  // namespace drhmm::bindings
