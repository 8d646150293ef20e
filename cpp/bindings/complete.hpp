#pragma once

#include "arrays.hpp"

namespace drhmm::bindings {

// For py::class_, with py::is_final(): every object is complete. pybind11 leaves construction to __init__, so the
// result of __new__ alone would be uninitialised memory that its methods take for an object. Here __new__ runs
// __init__. When the class is called, __init__ runs a second time, which pybind11 ignores.
inline py::custom_type_setup complete() {
  return py::custom_type_setup([](PyHeapTypeObject* made) {
    made->ht_type.tp_new = [](PyTypeObject* type, PyObject* arguments, PyObject* keywords) -> PyObject* {
      PyObject* const self = type->tp_base->tp_new(type, arguments, keywords);
      if (self == nullptr || type->tp_init(self, arguments, keywords) == 0) return self;
      Py_DECREF(self);
      return nullptr;
    };
  });
}

}  // namespace drhmm::bindings
