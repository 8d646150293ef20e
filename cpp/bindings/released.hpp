// Work without the GIL that Ctrl-C can stop.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>

#include "drhmm/exception_memory.hpp"
#include "drhmm/interruption.hpp"

namespace drhmm::bindings {

// Ten times a second, lets Python run its signal handlers; what they raise stops the work. Only Python's main thread
// has any to run.
inline void run_signal_handlers() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kInterval(100);
  static DRHMM_THREAD_LOCAL Clock::rep last = 0;
  const Clock::duration now = Clock::now().time_since_epoch();
  if (now - Clock::duration(last) < kInterval) return;
  last = now.count();
  const pybind11::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

// Gives up the GIL. Only where an exception half-way leaves nothing half-done.
class Released {
 public:
  Released() {
    // The first call of a thread comes when there is memory, as a rule; a later one may have to throw where there is
    // none.
    static DRHMM_THREAD_LOCAL bool can_throw = false;
    if (!can_throw) can_throw = make_exception_memory();
  }

 private:
  pybind11::gil_scoped_release release_;
  InterruptionScope scope_{&run_signal_handlers};
};

}  // namespace drhmm::bindings
