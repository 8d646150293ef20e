#include <pybind11/stl.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "complete.hpp"
#include "drhmm/stream/streams.hpp"
#include "framing.hpp"
#include "report.hpp"

namespace drhmm::bindings {

namespace {

using Flags = py::array_t<bool, py::array::c_style>;

// Raises instead of waiting: two threads that feed one sequence are a mistake, whatever the order.
class Exclusive {
 public:
  explicit Exclusive(std::atomic_flag& busy) : busy_(busy) {
    if (busy_.test_and_set(std::memory_order_acquire)) {
      throw std::runtime_error(
          "the stream is in use by another thread, or by the ratio source that it waits for: give every thread a "
          "stream of its own");
    }
  }
  ~Exclusive() { busy_.clear(std::memory_order_release); }
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;

 private:
  std::atomic_flag& busy_;
};

// Below this many multiplications (some microseconds) a call keeps the GIL: a thread that gives it up may wait
// milliseconds to get it back.
constexpr Index kWorthReleasing = 50000;

py::object not_implemented() { return py::reinterpret_borrow<py::object>(Py_NotImplemented); }

template <class Work>
auto without_gil_if(bool is_long, const Work& work) {
  if (!is_long) return work();
  const py::gil_scoped_release release;
  return work();
}

class LiveStreams {
 public:
  LiveStreams(Streams streams, std::shared_ptr<PooledRatio> ratio)
      : streams_(std::move(streams)), ratio_(std::move(ratio)) {}

  static std::unique_ptr<LiveStreams> make(const Array& transmat, const Array& startprob, const Array& mean,
                                           const Array& scale, Index window, Index n_known, Index lag,
                                           std::shared_ptr<PooledRatio> ratio) {
    const ConstRows a = rows(transmat, "transmat");
    const Eigen::Map<const Vector> pi = vector(startprob, "startprob");
    require(pi.size() > 0 && a.rows() == pi.size() && a.cols() == pi.size(), "transmat must be (S, S)");
    require(n_known == pi.size() || n_known == pi.size() - 1, "n_known must be S or S - 1");
    check_size(lag, "lag");
    Framing framing = make_framing(mean, scale, window);
    require(ratio == nullptr || (ratio->n_states() == n_known && ratio->framing().frame_size() == framing.frame_size()),
            "ratio must have the states and the frames of the model");
    return std::make_unique<LiveStreams>(Streams(std::move(framing), a, pi, n_known, lag), std::move(ratio));
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
    } catch (...) {  // out of memory: rows that nobody knows of must not stay
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

  // One frame for every active row; answers (n, n_known), NaN where there is none.
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
    // Before the rows go on: without memory for the answers, they must not.
    Array output = new_rows(n, streams_.n_known());
    SequenceStatus status = advance(taken, n_threads, evaluate, answers);
    if (!status.status.ok()) status.sequence = taken.rows[static_cast<std::size_t>(status.sequence)];
    Rows out = mutable_rows(output);
    out.setConstant(std::numeric_limits<double>::quiet_NaN());
    for (Index k = 0; k < taken.size(); ++k) out.row(taken.rows[static_cast<std::size_t>(k)]) = answers.row(k);
    return {report(status), std::move(output)};
  }

  // One frame for the only row: (d) -> (n_known), None while there is no answer yet, or a report if it failed.
  // NotImplemented if the arguments need a second look: x is no plain vector of doubles, or dt no plain integer.
  py::object step_one(const py::handle& x, const py::handle& dt, const py::object& evaluate) {
    const Index d = streams_.framing().n_columns();
    // Exactly an array: a subclass may mean more by its numbers, such as a mask.
    const bool is_plain = Py_TYPE(x.ptr()) == py::detail::npy_api::get().PyArray_Type_;
    if (!is_plain || !PyLong_CheckExact(dt.ptr())) return not_implemented();
    const auto array = py::reinterpret_borrow<py::array>(x);
    constexpr int kPlain = py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
    if (array.ndim() != 1 || array.shape(0) != d || (array.flags() & kPlain) != kPlain) return not_implemented();
    const py::dtype type = array.dtype();
    if (type.num() != py::detail::npy_api::NPY_DOUBLE_ || type.byteorder() != '=') return not_implemented();
    const long long steps = PyLong_AsLongLong(dt.ptr());
    if (steps < 1 || steps > kLongestGap) {
      PyErr_Clear();
      return not_implemented();
    }
    const Exclusive guard(busy_);
    require(streams_.n_rows() == 1, "step_one needs one row");
    const auto* const sample = static_cast<const double*>(array.data());
    check_finite({sample, 1, d}, nullptr);
    const py::object output = new_vector(streams_.n_known());
    auto* const out = static_cast<double*>(static_cast<void*>(py::detail::array_proxy(output.ptr())->data));
    bool has_answer = false;
    Status status;
    if (ratio_ != nullptr) {
      status = without_gil_if(streams_.work(1, steps) + ratio_->work_per_frame() >= kWorthReleasing,
                              [&] { return streams_.advance_one(*ratio_, sample, steps, out, has_answer); });
    } else {
      has_answer = streams_.row(0).sequence.n_frames() >= streams_.lag();
      RowMatrix answers(1, streams_.n_known());
      status = advance({{0}, ConstRows(sample, 1, d), {steps}}, 1, evaluate, answers).status;
      std::copy(answers.data(), answers.data() + answers.size(), out);
    }
    if (!status.ok()) return py::cast(report({status, 0}));
    return has_answer ? output : py::none();
  }

  // p(x_t-back | y_1..y_t) of one row, (S).
  std::pair<Report, Array> posterior(Index row, Index back) const {
    const Exclusive guard(busy_);
    check({row});
    require(back >= 0 && (back == 0 || back < streams_.row(row).sequence.n_kept()), "back reaches too far");
    Array output(streams_.n_states());
    return {report({streams_.posterior(row, back, output.mutable_data()), row}), output};
  }

  // p(x_t | y_1..y_t) of every row, (n, S); NaN in retired rows.
  std::pair<Report, Array> posteriors() const {
    const Exclusive guard(busy_);
    Array output = new_rows(streams_.n_rows(), streams_.n_states());
    Rows out = mutable_rows(output);
    SequenceStatus status;
    for (Index i = 0; i < streams_.n_rows() && status.status.ok(); ++i) {
      out.row(i).setConstant(std::numeric_limits<double>::quiet_NaN());
      if (streams_.row(i).live) status = {streams_.posterior(i, 0, out.row(i).data()), i};
    }
    return {report(status), std::move(output)};
  }

  // All rows: live, n_frames, wide, n_past, past, mantissa, exponent, evidence, dt; what a row does not use is 0.
  py::tuple state() const {
    const Exclusive guard(busy_);
    const Index n = streams_.n_rows(), kept = streams_.lag() + 1, s = streams_.n_states();
    const Index past_size = (streams_.framing().window - 1) * streams_.framing().n_columns();
    Flags live(n), wide(n);
    Steps n_frames(n), n_past(n), exponent({n, kept, s}), dt({n, kept});
    Array past({n, past_size});
    Array mantissa({n, kept, s}), evidence({n, kept, s});
    for (Array* values : {&past, &mantissa, &evidence}) {
      std::fill_n(values->mutable_data(), values->size(), 0.0);
    }
    for (Steps* values : {&exponent, &dt}) std::fill_n(values->mutable_data(), values->size(), std::int64_t{0});
    for (Index i = 0; i < n; ++i) {
      const Streams::Row& row = streams_.row(i);
      live.mutable_at(i) = row.live;
      wide.mutable_at(i) = row.sequence.is_wide();
      n_frames.mutable_at(i) = row.sequence.n_frames();
      n_past.mutable_at(i) = row.window.n_past();
      const Index used = row.window.n_past() * streams_.framing().n_columns();
      for (Index j = past_size - used; j < past_size; ++j) {
        past.mutable_at(i, j) = row.window.past()[static_cast<std::size_t>(j)];
      }
      for (Index k = 0; k < row.sequence.n_kept(); ++k) {
        const LiveSequence::Kept frame = row.sequence.kept(row.sequence.n_kept() - 1 - k);
        dt.mutable_at(i, k) = frame.dt;
        for (Index j = 0; j < s; ++j) {
          mantissa.mutable_at(i, k, j) = frame.message[j].mantissa();
          exponent.mutable_at(i, k, j) = frame.message[j].exponent();
          evidence.mutable_at(i, k, j) = frame.evidence[j];
        }
      }
    }
    return py::make_tuple(live, n_frames, wide, n_past, past, mantissa, exponent, evidence, dt);
  }

  // The opposite of state, on an object without rows.
  void restore(const Flags& live, const Steps& n_frames, const Flags& wide, const Steps& n_past, const Array& past,
               const Array& mantissa, const Steps& exponent, const Array& evidence, const Steps& dt) {
    const Exclusive guard(busy_);
    const Index n = live.size(), kept = streams_.lag() + 1, s = streams_.n_states();
    const Index window = streams_.framing().window;
    const Index past_size = (window - 1) * streams_.framing().n_columns();
    const auto has_shape = [](const py::array& values, const std::vector<Index>& shape) {
      return std::vector<Index>(values.shape(), values.shape() + values.ndim()) == shape;
    };
    require(streams_.n_rows() == 0, "restore needs an object without rows");
    for (const Array* values : {&past, &mantissa, &evidence}) require_aligned(*values, "the state");
    for (const Steps* values : {&n_frames, &n_past, &exponent, &dt}) require_aligned(*values, "the state");
    require(has_shape(live, {n}) && has_shape(n_frames, {n}) && has_shape(wide, {n}) && has_shape(n_past, {n}) &&
                has_shape(past, {n, past_size}) && has_shape(mantissa, {n, kept, s}) &&
                has_shape(exponent, {n, kept, s}) && has_shape(evidence, {n, kept, s}) && has_shape(dt, {n, kept}),
            "the arrays of a snapshot do not fit the model");
    Streams restored = streams_;
    std::int64_t longest_gap = 1;
    for (Index i = 0; i < n; ++i) {
      require(n_frames.at(i) >= 0 && n_frames.at(i) <= LiveSequence::kMostFrames && n_past.at(i) >= 0 &&
                  n_past.at(i) < window,
              "a count is out of range");
      require(live.at(i) || n_frames.at(i) == 0, "a retired row has frames");
      restored.add();
      Streams::Row& row = restored.row(i);
      row.live = live.at(i);
      row.window.restore(past.data() + i * past_size, n_past.at(i));
      std::vector<LiveSequence::Kept> frames;
      for (Index k = 0; k < std::min<std::int64_t>(n_frames.at(i), kept); ++k) {
        LiveSequence::Kept frame{NumberVector<Scaled>(s), Vector(s), dt.at(i, k)};
        require(frame.dt >= 1 && frame.dt <= kLongestGap, "a gap is out of range");
        longest_gap = std::max(longest_gap, frame.dt);
        bool any = false;
        for (Index j = 0; j < s; ++j) {
          const double m = mantissa.at(i, k, j);
          const std::int64_t e = exponent.at(i, k, j);
          require((m == 0 && e == 0) ||
                      (m >= 1 && m < 2 && e <= 0 && e >= (wide.at(i) ? -Scaled::kLargestExponent : -1074)),
                  "a message is out of range");
          any = any || (m > 0 && e == 0);
          frame.message[j] = Scaled::from_parts(m, e);
          frame.evidence[j] = evidence.at(i, k, j);
        }
        require(any, "a message has no likeliest state");
        Index unused = 0;
        NumberVector<Scaled> conditioned = NumberVector<Scaled>::Ones(s);
        require(condition(frame.evidence.data(), streams_.range(), conditioned, unused) == Outcome::ok,
                "the evidence of a frame is none");
        frames.push_back(std::move(frame));
      }
      row.sequence.restore(n_frames.at(i), wide.at(i), frames);
    }
    restored.reach(longest_gap);
    restored.look_for_retired_rows();
    streams_ = std::move(restored);
  }

 private:
  static constexpr std::int64_t kLongestGap = std::int64_t{1} << 53;

  // NaN is a missing sample; an infinite one is a mistake.
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

  SequenceStatus advance(const RowSamples& taken, int n_threads, const py::object& evaluate, RowMatrix& answers) {
    RowMatrix frames;
    std::vector<char> missing;
    RowMatrix evidence(taken.size(), streams_.n_states());
    const std::int64_t longest_gap = taken.dt.empty() ? 1 : *std::max_element(taken.dt.begin(), taken.dt.end());
    const Index recursion_work = streams_.work(taken.size(), longest_gap);
    const auto recurse = [&] {
      return streams_.advance(taken, {evidence.data(), evidence.rows(), evidence.cols()}, n_threads,
                              {answers.data(), answers.rows(), answers.cols()});
    };
    if (ratio_ != nullptr) {
      return without_gil_if(recursion_work + taken.size() * ratio_->work_per_frame() >= kWorthReleasing, [&] {
        streams_.frames(taken, frames, missing);
        streamed_log_ratios(*ratio_, frames, missing, n_threads, {evidence.data(), evidence.rows(), evidence.cols()});
        return recurse();
      });
    }
    streams_.frames(taken, frames, missing);
    for (Index k = 0; k < taken.size(); ++k) {
      if (missing[static_cast<std::size_t>(k)]) frames.row(k).setConstant(std::numeric_limits<double>::quiet_NaN());
    }
    const auto values = evaluate(to_numpy(frames)).cast<Array>();
    const ConstRows returned = rows(values, "log_ratios");
    require(returned.rows() == evidence.rows() && returned.cols() == evidence.cols(), "log_ratios must be (k, S)");
    evidence = returned;
    return without_gil_if(recursion_work >= kWorthReleasing, recurse);
  }

  mutable std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  Streams streams_;
  std::shared_ptr<PooledRatio> ratio_;
};

// step_one of a LiveStreams as a function of Python's own, which is called with less ceremony than those of pybind11: a
// tenth of a microsecond of about one.
py::object stepper(const py::object& streams) {
  struct Held {
    LiveStreams& streams;
    py::object keeping_them;
  };
  static constexpr const char* kName = "drhmm.stepper";
  static PyMethodDef definition{
      "step_one",
      reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(
          +[](PyObject* self, PyObject* const* arguments, Py_ssize_t n_arguments) -> PyObject* {
            auto* const held = static_cast<Held*>(PyCapsule_GetPointer(self, kName));
            if (held == nullptr) return nullptr;
            if (n_arguments != 3) {
              return PyErr_Format(PyExc_TypeError, "step_one takes x, dt and evaluate, got %zd arguments", n_arguments);
            }
            try {
              const auto evaluate = py::reinterpret_borrow<py::object>(arguments[2]);
              return held->streams.step_one(arguments[0], arguments[1], evaluate).release().ptr();
            } catch (py::error_already_set& error) {
              error.restore();
            } catch (...) {
              py::detail::try_translate_exceptions();
            }
            return nullptr;
          })),
      METH_FASTCALL, "step_one(x, dt, evaluate): the posterior of the frame, None, NotImplemented or a report"};
  const py::capsule held(new Held{streams.cast<LiveStreams&>(), streams}, kName,
                         [](void* pointer) { delete static_cast<Held*>(pointer); });
  PyObject* const function = PyCFunction_New(&definition, held.ptr());
  if (function == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(function);
}

}  // namespace

void bind_stream(py::module_& module) {
  py::class_<LiveStreams>(module, "LiveStreams", py::module_local(), py::is_final(), complete(),
                          "Many live sequences on one model.")
      .def(py::init(&LiveStreams::make), py::kw_only(), py::arg("transmat").noconvert(),
           py::arg("startprob").noconvert(), py::arg("mean").noconvert(), py::arg("scale").noconvert(),
           py::arg("window"), py::arg("n_known"), py::arg("lag"), py::arg("ratio").none(true))
      .def("add", &LiveStreams::add, py::arg("n"), "Rows for n new sequences; retired rows are used again.")
      .def("reset", &LiveStreams::reset, py::arg("rows"))
      .def("retire", &LiveStreams::retire, py::arg("rows"))
      .def("live", &LiveStreams::live)
      .def("n_frames", &LiveStreams::n_frames)
      .def("step", &LiveStreams::step, py::arg("samples").noconvert(), py::arg("active").noconvert(),
           py::arg("dt").noconvert(), py::arg("n_threads"), py::arg("evaluate"))
      .def("stepper", &stepper, "A function of x, dt and evaluate: one frame for the only row.")
      .def("posterior", &LiveStreams::posterior, py::arg("row"), py::arg("back"))
      .def("posteriors", &LiveStreams::posteriors)
      .def("state", &LiveStreams::state)
      .def("restore", &LiveStreams::restore, py::arg("live").noconvert(), py::arg("n_frames").noconvert(),
           py::arg("wide").noconvert(), py::arg("n_past").noconvert(), py::arg("past").noconvert(),
           py::arg("mantissa").noconvert(), py::arg("exponent").noconvert(), py::arg("evidence").noconvert(),
           py::arg("dt").noconvert());
}

}  // namespace drhmm::bindings
