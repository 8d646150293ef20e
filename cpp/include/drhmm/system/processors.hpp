// Where threads run.
#pragma once

#include <thread>

#if defined(__linux__) && defined(_GNU_SOURCE) && !defined(__ANDROID__)
#include <pthread.h>
#include <sched.h>
#endif

namespace drhmm {

// Moves a new thread to a processor that its creator does not use. After a pause Linux may start the thread on its
// creator's processor, and move it only when the work is nearly done, although others are idle. Afterwards it may run
// anywhere, as before. The thread must not end meanwhile: the system would take an ended thread for its creator.
inline void move_elsewhere([[maybe_unused]] std::thread& thread) noexcept {
#if defined(__linux__) && defined(_GNU_SOURCE) && !defined(__ANDROID__)
  const int here = sched_getcpu();
  cpu_set_t allowed;
  if (here < 0 || here >= CPU_SETSIZE) return;
  if (pthread_getaffinity_np(thread.native_handle(), sizeof allowed, &allowed) != 0) return;
  cpu_set_t elsewhere = allowed;
  CPU_CLR(here, &elsewhere);
  if (CPU_COUNT(&elsewhere) == 0) return;
  if (pthread_setaffinity_np(thread.native_handle(), sizeof elsewhere, &elsewhere) != 0) return;
  pthread_setaffinity_np(thread.native_handle(), sizeof allowed, &allowed);
#endif
}

}  // namespace drhmm
