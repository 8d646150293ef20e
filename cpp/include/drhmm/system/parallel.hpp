// Independent tasks on a few std::threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "drhmm/system/exception_memory.hpp"
#include "drhmm/system/interruption.hpp"
#include "drhmm/system/processors.hpp"
#include "drhmm/types.hpp"

namespace drhmm {

// Calls task(i) once for each i in 0..n-1, on at most n_threads threads including the caller's.
// Any thread may run any task, so tasks must not share anything they write.
// Rethrows the first exception in the caller once all threads have stopped. Tasks that ask whether they should stop
// then end early. The caller's thread can always be interrupted, also while it waits for the others.
template <class Task>
void parallel_for(Index n, int n_threads, const Task& task) {
  const Index n_workers = std::min<Index>(n_threads, n);
  if (n_workers <= 1) {
    for (Index i = 0; i < n; ++i) {
      check_interruption();
      task(i);
    }
    return;
  }
  constexpr std::chrono::milliseconds kPatience(50);
  std::atomic<Index> next{0};
  std::atomic<bool> stopped{false};
  std::exception_ptr failure;
  Index n_running = 0;
  std::mutex mutex;  // guards failure and n_running
  std::condition_variable done;
  const auto attempt = [&](const auto& action) {
    try {
      action();
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!failure) failure = std::current_exception();
      stopped = true;
    }
  };
  const auto work = [&] {
    const StopScope scope(stopped);
    attempt([&] {
      for (Index i = next.fetch_add(1); i < n; i = next.fetch_add(1)) {
        check_interruption();
        task(i);
      }
    });
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(n_workers - 1));
  try {
    for (Index k = 1; k < n_workers; ++k) {
      // Held until the thread is counted and moved, so that it cannot end earlier.
      const std::lock_guard<std::mutex> creating(mutex);
      threads.emplace_back([&] {
        if (make_exception_memory()) work();  // if not, the other threads do its work
        const std::lock_guard<std::mutex> lock(mutex);
        --n_running;
        done.notify_one();
      });
      ++n_running;
      move_elsewhere(threads.back());
    }
  } catch (...) {  // the system has no more threads: those that started, and this one, do the work
  }
  work();
  std::unique_lock<std::mutex> lock(mutex);
  while (n_running > 0) {
    done.wait_for(lock, kPatience);
    lock.unlock();
    if (!stopped) attempt([] { check_interruption(); });
    lock.lock();
  }
  lock.unlock();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace drhmm
