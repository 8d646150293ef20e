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
                                           Index window, Index n_known, Index lag, std::shared_ptr<PooledRatio> ratio,
                                           const std::optional<LevelNumbers>& levels) {
    require(chain != nullptr, "chain must not be None");
    require(n_known == chain->n_columns() || n_known == chain->n_columns() - 1, "n_known must be S or S - 1");
    check_size(lag, "lag");
    Framing framing = make_framing(mean, scale, window);
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
    RowSamples taken;
    for (Index i = 0; i < n; ++i) {
      if (!active.at(i)) continue;
      require(streams_.row(i).live, "a retired row is active");
      taken.rows.push_back(i);
      taken.dt.push_back(steps[i]);
    }
    check_finite(input, active.data());
    taken.samples.resize(taken.size(), input.cols());
    for (Index k = 0; k < taken.size(); ++k) {
      taken.samples.row(k) = input.row(taken.rows[static_cast<std::size_t>(k)]);
    }
    RowMatrix answers(taken.size(), streams_.n_known());
    // Allocate before the rows advance: without memory for the answers, they must not.
    Array output = new_rows(n, streams_.n_known());
    SequenceStatus status = advance(taken, n_threads, evaluate, {answers.data(), answers.rows(), answers.cols()});
    if (!status.status.ok()) status.sequence = taken.rows[static_cast<std::size_t>(status.sequence)];
    Rows out = mutable_rows(output);
    out.setConstant(std::numeric_limits<double>::quiet_NaN());
    for (Index k = 0; k < taken.size(); ++k) out.row(taken.rows[static_cast<std::size_t>(k)]) = answers.row(k);
    return {report(status), std::move(output)};
  }

  // One frame for the only row: (d) -> (n_known), None while there is no answer yet, or a report if it failed.
  // NotImplemented if `read_sample` does not accept x, or dt is not a plain integer: Python then checks them.
  py::object step_one(const py::handle& x, const py::handle& dt, const py::object& evaluate) {
    const Index d = streams_.framing().n_columns();
    const Exclusive guard(busy_);
    require(streams_.n_rows() == 1, "step_one needs one row");
    const long long steps = PyLong_CheckExact(dt.ptr()) ? PyLong_AsLongLong(dt.ptr()) : 0;
    only_.samples.resize(1, d);
    if (steps < 1 || steps > kLongestGap || !read_sample(x.ptr(), d, only_.samples.data())) {
      PyErr_Clear();
      return not_implemented();
    }
    check_finite({only_.samples.data(), 1, d}, nullptr);
    const py::object output = new_vector(streams_.n_known());
    auto* const out = static_cast<double*>(static_cast<void*>(py::detail::array_proxy(output.ptr())->data));
    only_.rows.assign(1, 0);
    only_.dt.assign(1, steps);
    const bool has_answer = streams_.row(0).sequence.n_frames() >= streams_.lag();
    const Status status = advance(only_, 1, evaluate, {out, 1, streams_.n_known()}).status;
    if (!status.ok()) return py::cast(report({status, 0}));
    return has_answer ? output : py::none();
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

  // out (d) <- a plain vector of floats or integers, or a plain list or tuple of them; false for anything else.
  static bool read_sample(PyObject* x, Index d, double* out) {
    if (PyList_CheckExact(x) || PyTuple_CheckExact(x)) {
      if (PySequence_Fast_GET_SIZE(x) != d) return false;
      PyObject* const* const values = PySequence_Fast_ITEMS(x);
      for (Index j = 0; j < d; ++j) {
        if (!PyFloat_Check(values[j]) && !PyLong_CheckExact(values[j])) return false;
        out[j] = PyFloat_Check(values[j]) ? PyFloat_AS_DOUBLE(values[j]) : PyLong_AsDouble(values[j]);
        if (out[j] == -1 && PyErr_Occurred()) return false;
      }
      return true;
    }
    // Only plain arrays: a subclass may carry more than numbers, such as a mask.
    using Api = py::detail::npy_api;
    if (Py_TYPE(x) != Api::get().PyArray_Type_) return false;
    const auto array = py::reinterpret_borrow<py::array>(x);
    constexpr int kPlain = Api::NPY_ARRAY_C_CONTIGUOUS_ | Api::NPY_ARRAY_ALIGNED_;
    const py::dtype type = array.dtype();
    if (array.ndim() != 1 || array.shape(0) != d || (array.flags() & kPlain) != kPlain || type.byteorder() != '=') {
      return false;
    }
    const auto copy = [&](auto of_type) {
      std::copy_n(static_cast<const decltype(of_type)*>(array.data()), d, out);
      return true;
    };
    switch (type.num()) {
      case Api::NPY_DOUBLE_:
        return copy(0.0);
      case Api::NPY_FLOAT_:
        return copy(0.0F);
      case Api::NPY_INT_:
        return copy(0);
      case Api::NPY_LONG_:
        return copy(0L);
      default:
        return false;
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

  SequenceStatus advance(const RowSamples& taken, int n_threads, const py::object& evaluate, const Rows& answers) {
    const Index n = taken.size(), n_columns = streams_.chain().n_columns();
    const std::int64_t longest_gap = taken.dt.empty() ? 1 : *std::max_element(taken.dt.begin(), taken.dt.end());
    const Index work = streams_.work(n, longest_gap);
    if (ratio_ != nullptr) {
      return without_gil_if(work + n * ratio_->work_per_frame() >= kWorthReleasing,
                            [&] { return streams_.advance(taken, *ratio_, n_threads, answers); });
    }
    RowMatrix frames;
    std::vector<char> missing;
    streams_.frames(taken, frames, missing);
    for (Index k = 0; k < n; ++k) {
      if (missing[static_cast<std::size_t>(k)]) frames.row(k).setConstant(std::numeric_limits<double>::quiet_NaN());
    }
    const auto values = sleep_at_exit([&] { return evaluate(to_numpy(frames)).cast<Array>(); });
    const ConstRows evidence = rows(values, "log_ratios");
    require(evidence.rows() == n && evidence.cols() == n_columns, "log_ratios must be (k, S)");
    return without_gil_if(work >= kWorthReleasing,
                          [&] { return streams_.advance(taken, evidence, n_threads, answers); });
  }

  mutable std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  Streams streams_;
  std::shared_ptr<PooledRatio> ratio_;
  RowSamples only_;  // memory of step_one
};

}  // namespace drhmm::bindings
