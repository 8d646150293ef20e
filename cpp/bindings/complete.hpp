#pragma once

#include "arrays.hpp"

namespace drhmm::bindings {

// For py::class_, with py::is_final(): objects that exist are complete. pybind11 leaves everything to __init__, so that
// what __new__ alone returns has memory in which nothing was written, and its methods take it for an object. Here
// __new__ runs __init__; that a class which is called runs it once more, pybind11 takes no notice of.
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
