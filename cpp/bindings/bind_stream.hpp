#pragma once

#include "complete.hpp"
#include "live_streams.hpp"

namespace drhmm::bindings {

namespace {

// step_one of a LiveStreams as a plain C function of Python: a call takes a tenth less than through pybind11.
py::object stepper(const py::object& streams) {
  struct Held {
    LiveStreams& streams;
    py::object keeping_them;
  };
  static PyMethodDef definition{
      "step_one",
      reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(
          +[](PyObject* self, PyObject* const* arguments, Py_ssize_t n_arguments) -> PyObject* {
            auto* const held = static_cast<Held*>(PyCapsule_GetPointer(self, nullptr));
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
  const py::capsule held(new Held{streams.cast<LiveStreams&>(), streams},
                         [](void* pointer) { delete static_cast<Held*>(pointer); });
  PyObject* const function = PyCFunction_New(&definition, held.ptr());
  if (function == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(function);
}

std::tuple<Array, py::list, std::int64_t> follow_alarm(const LevelNumbers& levels, const Array& scores,
                                                       const std::optional<Steps>& dt) {
  const Index n = scores.size();
  require_size(scores, n, "scores");
  Array sums(n);
  py::list found;
  Watch watch;
  const std::int64_t* const steps = dt ? checked_steps(*dt, n) : nullptr;
  for (const AlarmEpisode& episode :
       follow(alarm_levels(levels), scores.data(), steps, n, sums.mutable_data(), watch)) {
    found.append(episode_tuple(episode));
  }
  return {std::move(sums), std::move(found), watch.n_marks};
}

}  // namespace

inline void bind_stream(py::module_& module) {
  py::class_<LiveStreams>(module, "LiveStreams", py::module_local(), py::is_final(), complete(),
                          "Many live sequences on one model.")
      .def(py::init(&LiveStreams::make), py::kw_only(), py::arg("chain"), py::arg("mean").noconvert(),
           py::arg("scale").noconvert(), py::arg("window"), py::arg("span"), py::arg("n_known"), py::arg("lag"),
           py::arg("ratio").none(true), py::arg("levels") = py::none())
      .def("add", &LiveStreams::add, py::arg("n"), "Rows for n new sequences; retired rows are used again.")
      .def("reset", &LiveStreams::reset, py::arg("rows"))
      .def("retire", &LiveStreams::retire, py::arg("rows"))
      .def("live", &LiveStreams::live)
      .def("n_frames", &LiveStreams::n_frames)
      .def("alarm", &LiveStreams::alarm, py::arg("row"), py::arg("is_ended"), py::arg("known"))
      .def("alarm_sum", &LiveStreams::alarm_sum, py::arg("row"))
      .def("alarm_marks", &LiveStreams::alarm_marks, py::arg("row"))
      .def("step", &LiveStreams::step, py::arg("samples").noconvert(), py::arg("active").noconvert(),
           py::arg("dt").noconvert(), py::arg("n_threads"), py::arg("evaluate"))
      .def("stepper", &stepper, "A function of x, dt and evaluate: one frame for the only row.")
      .def("posterior", &LiveStreams::posterior, py::arg("row"), py::arg("back"))
      .def("posteriors", &LiveStreams::posteriors)
      .def("state", &LiveStreams::state)
      .def("restore", &LiveStreams::restore, py::arg("state"));
  module.def("follow_alarm", &follow_alarm, py::arg("levels"), py::arg("scores").noconvert(), py::arg("dt").none(true),
             "The cumulative sum of scores (T,) of one sequence, its alarms, and how many count against the promise.");
  module.def(
      "count_alarms",
      [](const LevelNumbers& levels, const Array& excursions, const Array& values) {
        require_size(values, static_cast<Index>(rows(excursions, "excursions").col(2).sum()), "values");
        return count_alarms(alarm_levels(levels), rows(excursions, "excursions"), values.data());
      },
      py::arg("levels"), py::arg("excursions").noconvert(), py::arg("values").noconvert());
}

}  // namespace drhmm::bindings
