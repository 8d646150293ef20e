// Work without the GIL that Ctrl-C can stop.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <thread>

#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include "drhmm/system/exception_memory.hpp"
#include "drhmm/system/interruption.hpp"
#include "drhmm/types.hpp"

namespace drhmm::bindings {

// Calls something that may wait for the GIL. When Python exits, it ends each daemon thread that asks for the GIL,
// before 3.14 with pthread_exit. glibc then unwinds the stack of the thread, with destructors and handlers, and C++
// calls std::terminate. Here such a thread sleeps instead until the process has ended, as in Python 3.14.
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

// Takes the GIL during its lifetime, in a thread that released it.
class GilAcquire {
 public:
  GilAcquire() : state_(sleep_at_exit([] { return PyGILState_Ensure(); })) {}
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

// Lets Python run its signal handlers ten times a second. Their exceptions stop the work. Only Python's main thread has
// handlers to run.
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

// Releases the GIL. Use it only if an exception half-way leaves nothing half-done.
class Released {
 public:
  Released() {
    // A thread usually has memory at its first call. A later call may have to throw without any.
    static DRHMM_THREAD_LOCAL bool can_throw = false;
    if (!can_throw) can_throw = make_exception_memory();
  }

 private:
  GilRelease release_;
  InterruptionScope scope_{&run_signal_handlers};
};

// Below this many multiplications (some microseconds) a call keeps the GIL: a thread that releases it may wait
// milliseconds to get it back.
constexpr Index kWorthReleasing = 50000;

template <class Release, class Call>
auto without_gil_if(bool is_long, const Call& call) {
  if (!is_long) return call();
  const Release release;
  return call();
}

}  // namespace drhmm::bindings
