// Independent tasks on a few std::threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "drhmm/types.hpp"

namespace drhmm {

// Calls task(i) for i in 0..n-1, each once, on at most n_threads threads including the caller's.
// Which thread runs which task is not fixed: tasks must not share anything they write.
// The first exception is rethrown in the caller once all threads have stopped.
template <class Task>
void parallel_for(Index n, int n_threads, const Task& task) {
  const Index n_workers = std::min<Index>(n_threads, n);
  if (n_workers <= 1) {
    for (Index i = 0; i < n; ++i) task(i);
    return;
  }
  std::atomic<Index> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    try {
      for (Index i = next.fetch_add(1); i < n; i = next.fetch_add(1)) task(i);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(failure_mutex);
      if (!failure) failure = std::current_exception();
      next.store(n);
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(n_workers - 1));
  try {
    for (Index k = 1; k < n_workers; ++k) threads.emplace_back(work);
  } catch (...) {  // the system has no thread left to give: the ones that started, and this one, do the work
  }
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace drhmm
