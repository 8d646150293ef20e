// Work without the GIL that Ctrl-C can stop.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <thread>

#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include "drhmm/exception_memory.hpp"
#include "drhmm/interruption.hpp"

namespace drhmm::bindings {

// Calls what may wait for the GIL. When Python exits, it ends a daemon thread that asks for the GIL, before 3.14 by
// pthread_exit. glibc then unwinds the thread's stack, destructors and handlers included, which C++ answers with
// std::terminate. Such a thread sleeps here instead until the process has ended, as it does in Python 3.14.
template <class Call>
auto sleep_at_exit(const Call& call) {
#if defined(__GLIBCXX__)
  try {
    return call();
  } catch (const abi::__forced_unwind&) {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
#else
  return call();
#endif
}

// Gives up the GIL for as long as it lives.
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() {
    sleep_at_exit([this] { PyEval_RestoreThread(state_); });
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

// Takes the GIL for as long as it lives, in a thread that gave it up.
class GilAcquire {
 public:
  GilAcquire() : state_(sleep_at_exit([] { return PyGILState_Ensure(); })) {}
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

// Ten times a second, lets Python run its signal handlers; what they raise stops the work. Only Python's main thread
// has any to run.
inline void run_signal_handlers() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kInterval(100);
  static DRHMM_THREAD_LOCAL Clock::rep last = 0;
  const Clock::duration now = Clock::now().time_since_epoch();
  if (now - Clock::duration(last) < kInterval) return;
  last = now.count();
  const GilAcquire acquire;
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
  GilRelease release_;
  InterruptionScope scope_{&run_signal_handlers};
};

}  // namespace drhmm::bindings
