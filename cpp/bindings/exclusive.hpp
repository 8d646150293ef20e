// Lets one thread at a time use a live object.
#pragma once

#include <atomic>
#include <stdexcept>

#include "arrays.hpp"
#include "released.hpp"

namespace drhmm::bindings {

// Raises instead of waiting: two threads that feed one sequence at once are a mistake, whatever the order.
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

inline py::object not_implemented() { return py::reinterpret_borrow<py::object>(Py_NotImplemented); }

}  // namespace drhmm::bindings
