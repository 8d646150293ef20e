// numpy arrays in and out. Arguments are bound with noconvert: the Python layer passes C-contiguous float64.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "answer_memory.hpp"
#include "drhmm/types.hpp"

namespace drhmm::bindings {

namespace py = pybind11;

using Array = py::array_t<double, py::array::c_style>;
using Lengths = std::vector<Index>;
using Steps = py::array_t<std::int64_t, py::array::c_style>;

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// An array of the right type can still be misaligned.
template <class Value, int flags>
void require_aligned(const py::array_t<Value, flags>& array, const char* name) {
  if (reinterpret_cast<std::uintptr_t>(array.data()) % alignof(Value) != 0) {
    throw std::invalid_argument(std::string(name) + " must be aligned");
  }
}

inline ConstRows rows(const Array& array, const char* name) {
  require_aligned(array, name);
  if (array.ndim() != 2) throw std::invalid_argument(std::string(name) + " must have two dimensions");
  return {array.data(), array.shape(0), array.shape(1)};
}

inline Eigen::Map<const Vector> vector(const Array& array, const char* name) {
  require_aligned(array, name);
  if (array.ndim() != 1) throw std::invalid_argument(std::string(name) + " must have one dimension");
  return {array.data(), array.shape(0)};
}

inline void check_lengths(const Lengths& lengths, Index n_rows) {
  Index sum = 0;
  for (const Index length : lengths) {
    require(length > 0 && length <= n_rows - sum, "lengths must be positive and sum to the number of rows");
    sum += length;
  }
  require(sum == n_rows, "lengths must be positive and sum to the number of rows");
}

inline const std::int64_t* checked_steps(const Steps& steps, Index n_rows) {
  require_aligned(steps, "dt");
  require(steps.ndim() == 1 && steps.shape(0) == n_rows, "dt must have one entry per row");
  require(std::all_of(steps.data(), steps.data() + n_rows, [](std::int64_t dt) { return dt >= 1; }),
          "dt must be at least 1");
  return steps.data();
}

// Limits sizes so that products of two of them cannot overflow. There may still be too little memory.
inline void check_size(Index size, const char* name, Index lowest = 0) {
  if (size < lowest || size > Index{1} << 31) {
    throw std::invalid_argument(std::string(name) + " must be from " + std::to_string(lowest) + " to 2^31");
  }
}

// An uninitialised array of this shape. Avoids the lists of sizes and strides that py::array makes.
template <class Value>
py::array_t<Value, py::array::c_style> new_array(std::initializer_list<Index> shape) {
  using Made = py::array_t<Value, py::array::c_style>;
  static_assert(sizeof(Index) == sizeof(Py_intptr_t));
  double size = sizeof(Value);  // in bytes; a double, because an integer could overflow before numpy refuses the size
  for (const Index n : shape) size *= static_cast<double>(n);
  if (size < static_cast<double>(AnswerMemory::kSmallest) || size > 0x1p60) {
    const auto& numpy = py::detail::npy_api::get();
    PyObject* const array = numpy.PyArray_NewFromDescr_(
        numpy.PyArray_Type_, py::dtype::of<Value>().release().ptr(), static_cast<int>(shape.size()),
        reinterpret_cast<const Py_intptr_t*>(shape.begin()), nullptr, nullptr, 0, nullptr);
    if (array == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<Made>(array);
  }
  std::size_t bytes = sizeof(Value);
  for (const Index n : shape) bytes *= static_cast<std::size_t>(n);
  void* const memory = AnswerMemory::take(bytes);
  py::capsule owner;
  try {
    owner = py::capsule(memory, [](void* answer) { AnswerMemory::give_back(answer); });
  } catch (...) {
    AnswerMemory::give_back(memory);
    throw;
  }
  return Made(shape, static_cast<Value*>(memory), owner);
}

inline Array new_rows(Index n, Index d) { return new_array<double>({n, d}); }

inline Rows mutable_rows(Array& array) { return {array.mutable_data(), array.shape(0), array.shape(1)}; }

template <class Values>
Array to_numpy(const Eigen::MatrixBase<Values>& values) {
  Array array = new_rows(values.rows(), values.cols());
  mutable_rows(array) = values;
  return array;
}

}  // namespace drhmm::bindings
