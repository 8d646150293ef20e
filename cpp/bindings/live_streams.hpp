// Many live sequences on one model, as Python sees them.
#pragma once

#include <pybind11/stl.h>

#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "exclusive.hpp"
#include "framing.hpp"
#include "report.hpp"
#include "snapshot_arrays.hpp"

namespace drhmm::bindings {

using LevelNumbers = std::tuple<double, double, std::int64_t, std::int64_t>;  // sum, frame, hold_off, span

inline AlarmLevels alarm_levels(const LevelNumbers& numbers) {
  const auto [sum, frame, hold_off, span] = numbers;
  require(sum >= 0 && frame >= 0 && hold_off >= 0 && span >= 1, "levels and hold_off must be at least 0");
  return {sum, frame, hold_off, span};
}

// Begin, end, peak, score and cause of an alarm, and the frames of its highest evidence.
inline py::tuple episode_tuple(const AlarmEpisode& episode) {
  py::tuple places(episode.n_kept());
  for (std::size_t k = 0; k < places.size(); ++k) places[k] = py::int_(episode.places[k]);
  const auto peak = static_cast<std::size_t>(episode.peak());
  return py::make_tuple(episode.begin, episode.last + 1, episode.places[peak], episode.scores[peak], episode.cause,
                        places);
}

class LiveStreams {
 public:
  LiveStreams(Streams streams, std::shared_ptr<PooledRatio> ratio)
      : streams_(std::move(streams)), ratio_(std::move(ratio)) {}

  static std::unique_ptr<LiveStreams> make(std::shared_ptr<const Chain> chain, const Array& mean, const Array& scale,
                                           Index window, Index span, Index n_known, Index lag,
                                           std::shared_ptr<PooledRatio> ratio,
                                           const std::optional<LevelNumbers>& levels) {
    require(chain != nullptr, "chain must not be None");
    require(n_known == chain->n_columns() || n_known == chain->n_columns() - 1, "n_known must be S or S - 1");
    check_size(lag, "lag");
    Framing framing = make_framing(mean, scale, window, span);
    require(ratio == nullptr || (ratio->n_states() == n_known && ratio->framing().frame_size() == framing.frame_size()),
            "ratio must have the states and the frames of the model");
    require(!levels || n_known < chain->n_columns(), "an alarm needs a state for the unknown");
    auto context = ratio == nullptr ? nullptr : ratio->context();
    return std::make_unique<LiveStreams>(Streams(std::move(framing), std::move(chain), n_known, lag, std::move(context),
                                                 levels ? std::optional(alarm_levels(*levels)) : std::nullopt),
                                         std::move(ratio));
  }

  Steps add(Index n) {
    const Exclusive guard(busy_);
    check_size(n, "n");
    const Index before = streams_.n_rows();
    Steps added(n);
    std::int64_t* const rows = added.mutable_data();
    Index n_added = 0;
    try {
      for (; n_added < n; ++n_added) rows[n_added] = streams_.add();
    } catch (...) {  // out of memory: the caller does not know the new rows, so remove them
      for (Index k = 0; k < n_added; ++k) streams_.retire(rows[k]);
      streams_.forget_rows_from(before);
      throw;
    }
    return added;
  }

  void reset(const std::vector<Index>& which) {
    const Exclusive guard(busy_);
    check(which);
    for (const Index row : which) streams_.reset(row);
  }

  void retire(const std::vector<Index>& which) {
    const Exclusive guard(busy_);
    check(which);
    for (const Index row : which) streams_.retire(row);
  }

  Flags live() const {
    const Exclusive guard(busy_);
    Flags result(streams_.n_rows());
    for (Index i = 0; i < streams_.n_rows(); ++i) result.mutable_at(i) = streams_.row(i).live;
    return result;
  }

  Steps n_frames() const {
    const Exclusive guard(busy_);
    Steps result(streams_.n_rows());
    for (Index i = 0; i < streams_.n_rows(); ++i) result.mutable_at(i) = streams_.row(i).sequence.n_frames();
    return result;
  }

  // The current alarm of a row, or the one that its newest frame ended, with the frames of its highest evidence (k, D)
  // unless its places are `known`; None without an alarm.
  py::object alarm(Index row, bool is_ended, const py::object& known) const {
    const Exclusive guard(busy_);
    check({row});
    const Streams::Row& own = streams_.row(row);
    const AlarmEpisode& episode = is_ended ? own.watch.ended : own.watch.now;
    if (!episode.is_on()) return py::none();
    const py::tuple told = episode_tuple(episode);
    if (known.equal(told[5])) return py::make_tuple(told, py::none());
    const double* const frames = (is_ended ? own.ended_witnesses : own.witnesses).data();
    return py::make_tuple(told, Array({episode.n_kept(), streams_.framing().frame_size()}, frames));
  }

  double alarm_sum(Index row) const {
    const Exclusive guard(busy_);
    check({row});
    return streams_.row(row).watch.total;
  }

  // The number of kept marks of a row, and the steps since the oldest of these, or since the begin if all are kept.
  std::pair<std::int64_t, std::int64_t> alarm_marks(Index row) const {
    const Exclusive guard(busy_);
    check({row});
    const Watch& watch = streams_.row(row).watch;
    if (watch.n_marks < Watch::kMarks) return {watch.n_marks, watch.clock};
    return {Watch::kMarks, watch.clock - watch.marks.front()};
  }

  // One frame for every active row; answers (n, n_known), NaN for rows without one.
  std::pair<Report, Array> step(const Array& samples, const Flags& active, const Steps& dt, int n_threads,
                                const py::object& evaluate) {
    const Exclusive guard(busy_);
    const ConstRows input = rows(samples, "samples");
    const Index n = streams_.n_rows();
    require(input.rows() == n && input.cols() == streams_.framing().n_columns(), "samples must be (n, d)");
    require(active.ndim() == 1 && active.shape(0) == n, "active must have one entry per row");
    const std::int64_t* steps = checked_steps(dt, n);
    std::vector<Index> taken;
    for (Index i = 0; i < n; ++i) {
      if (!active.at(i)) continue;
      require(streams_.row(i).live, "a retired row is active");
      taken.push_back(i);
    }
    check_finite(input, active.data());
    const auto n_taken = static_cast<Index>(taken.size());
    RowMatrix own(n_taken, input.cols()), answers(n_taken, streams_.n_known());
    std::vector<std::int64_t> own_steps;
    for (Index k = 0; k < n_taken; ++k) {
      own.row(k) = input.row(taken[static_cast<std::size_t>(k)]);
      own_steps.push_back(steps[taken[static_cast<std::size_t>(k)]]);
    }
    // Allocate before the rows advance: without memory for the answers, they must not.
    Array output = new_rows(n, streams_.n_known());
    SequenceStatus status =
        advance({n_taken, taken.data(), own.data(), own_steps.data()}, n_threads, evaluate, answers.data());
    if (!status.status.ok()) status.sequence = taken[static_cast<std::size_t>(status.sequence)];
    Rows out = mutable_rows(output);
    out.setConstant(std::numeric_limits<double>::quiet_NaN());
    for (Index k = 0; k < n_taken; ++k) out.row(taken[static_cast<std::size_t>(k)]) = answers.row(k);
    return {report(status), std::move(output)};
  }

  // One frame for the only row: (d) -> (n_known), None while there is no answer yet, or a report if it failed.
  // NotImplemented if `read_sample` does not accept x, or dt is not a plain integer: Python then checks them.
  py::object step_one(const py::handle& x, const py::handle& dt, const py::object& evaluate) {
    const Exclusive guard(busy_);
    require(streams_.n_rows() == 1, "step_one needs one row");
    const std::int64_t steps = PyLong_CheckExact(dt.ptr()) ? PyLong_AsLongLong(dt.ptr()) : 0;
    const double* const sample = steps < 1 || steps > kLongestGap ? nullptr : read_sample(x.ptr());
    if (sample == nullptr) {
      PyErr_Clear();
      return not_implemented();
    }
    check_finite({sample, 1, streams_.framing().n_columns()}, nullptr);
    Array output = new_array<double>({streams_.n_known()});
    const bool has_answer = streams_.row(0).sequence.n_frames() >= streams_.lag();
    constexpr Index kRow = 0;
    const Status status = advance({1, &kRow, sample, &steps}, 1, evaluate, output.mutable_data()).status;
    if (!status.ok()) return py::cast(report({status, 0}));
    if (!has_answer) return py::none();
    return output;
  }

  // p(x_t-back | y_1..y_t) of one row, (S).
  std::pair<Report, Array> posterior(Index row, Index back) {
    const Exclusive guard(busy_);
    check({row});
    require(back >= 0 && (back == 0 || back < streams_.row(row).sequence.n_kept()), "back reaches too far");
    Array output(streams_.chain().n_columns());
    return {report({streams_.posterior(row, back, output.mutable_data()), row}), output};
  }

  // p(x_t | y_1..y_t) of every row, (n, S); NaN in retired rows.
  std::pair<Report, Array> posteriors() {
    const Exclusive guard(busy_);
    Array output = new_rows(streams_.n_rows(), streams_.chain().n_columns());
    Rows out = mutable_rows(output);
    SequenceStatus status;
    for (Index i = 0; i < streams_.n_rows() && status.status.ok(); ++i) {
      out.row(i).setConstant(std::numeric_limits<double>::quiet_NaN());
      if (streams_.row(i).live) status = {streams_.posterior(i, 0, out.row(i).data()), i};
    }
    return {report(status), std::move(output)};
  }

  // The state of all rows: name -> array.
  py::dict state() const {
    const Exclusive guard(busy_);
    return to_arrays(Snapshot::of(streams_));
  }

  void restore(const py::dict& state) {
    const Exclusive guard(busy_);
    require(streams_.n_rows() == 0, "restore needs an object without rows");
    streams_ = to_snapshot(streams_, state).restored(streams_);
  }

 private:
  static constexpr std::int64_t kLongestGap = std::int64_t{1} << 53;

  // The numbers (d) of a plain vector of floats or integers, or of a plain list or tuple of them; null for anything
  // else. Copies all but float64 to sample_.
  const double* read_sample(PyObject* x) {
    const Index d = streams_.framing().n_columns();
    if (PyList_CheckExact(x) || PyTuple_CheckExact(x)) {
      if (PySequence_Fast_GET_SIZE(x) != d) return nullptr;
      PyObject* const* const values = PySequence_Fast_ITEMS(x);
      sample_.resize(static_cast<std::size_t>(d));
      for (std::size_t j = 0; j < sample_.size(); ++j) {
        if (!PyFloat_Check(values[j]) && !PyLong_CheckExact(values[j])) return nullptr;
        sample_[j] = PyFloat_Check(values[j]) ? PyFloat_AS_DOUBLE(values[j]) : PyLong_AsDouble(values[j]);
        if (sample_[j] == -1 && PyErr_Occurred()) return nullptr;
      }
      return sample_.data();
    }
    // Only plain arrays: a subclass may carry more than numbers, such as a mask.
    using Api = py::detail::npy_api;
    if (Py_TYPE(x) != Api::get().PyArray_Type_) return nullptr;
    const auto* const array = py::detail::array_proxy(x);
    const auto* const type = py::detail::array_descriptor_proxy(array->descr);
    constexpr int kPlain = Api::NPY_ARRAY_C_CONTIGUOUS_ | Api::NPY_ARRAY_ALIGNED_;
    if (array->nd != 1 || array->dimensions[0] != d || (array->flags & kPlain) != kPlain || type->byteorder != '=') {
      return nullptr;
    }
    const void* const data = array->data;
    const auto copy = [&](auto of_type) {
      const auto* const given = static_cast<const decltype(of_type)*>(data);
      sample_.assign(given, given + d);
      return sample_.data();
    };
    switch (type->type_num) {
      case Api::NPY_DOUBLE_:
        return static_cast<const double*>(data);
      case Api::NPY_FLOAT_:
        return copy(0.0F);
      case Api::NPY_INT_:
        return copy(0);
      case Api::NPY_LONG_:
        return copy(0L);
      default:
        return nullptr;
    }
  }

  // NaN is a missing sample; infinity is a mistake.
  static void check_finite(const ConstRows& samples, const bool* active) {
    for (Index i = 0; i < samples.rows(); ++i) {
      if (active != nullptr && !active[i]) continue;
      for (Index j = 0; j < samples.cols(); ++j) {
        if (!std::isinf(samples(i, j))) continue;
        const std::string value = samples(i, j) > 0 ? "inf" : "-inf";
        const std::string name = active == nullptr ? "x" : "X";
        const std::string place = (active == nullptr ? "" : "row " + std::to_string(i) + ", ") + "column ";
        throw std::invalid_argument(name + " has an infinite value (" + value + ") at " + place + std::to_string(j));
      }
    }
  }

  void check(const std::vector<Index>& which) const {
    for (const Index row : which) require(row >= 0 && row < streams_.n_rows(), "there is no such row");
  }

  SequenceStatus advance(const RowSamples& step, int n_threads, const py::object& evaluate, double* answers) {
    const std::int64_t longest_gap = step.n == 0 ? 1 : *std::max_element(step.dt, step.dt + step.n);
    const Index work = streams_.work(step.n, longest_gap);
    if (ratio_ != nullptr) {
      return without_gil_if<GilRelease>(work + step.n * ratio_->work_per_frame() >= kWorthReleasing,
                                        [&] { return streams_.advance(step, *ratio_, n_threads, answers); });
    }
    const auto frames = to_numpy(streams_.frames(step));
    const auto values = sleep_at_exit([&] { return evaluate(frames).cast<Array>(); });
    const ConstRows evidence = rows(values, "log_ratios");
    require(evidence.rows() == step.n && evidence.cols() == streams_.chain().n_columns(), "log_ratios must be (k, S)");
    return without_gil_if<GilRelease>(work >= kWorthReleasing,
                                      [&] { return streams_.advance(step, evidence.data(), n_threads, answers); });
  }

  mutable std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  Streams streams_;
  std::shared_ptr<PooledRatio> ratio_;
  std::vector<double> sample_;  // memory of step_one
};

}  // namespace drhmm::bindings
