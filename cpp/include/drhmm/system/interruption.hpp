// Lets long loops ask now and then whether they should stop.
#pragma once

#include <atomic>
#include <exception>

// In a library that is loaded late, thread-local data get their memory when a thread first touches them, and glibc
// aborts if there is none. With this TLS model they exist as soon as the thread does.
#if defined(__linux__) && defined(__GNUC__)
#define DRHMM_THREAD_LOCAL thread_local __attribute__((tls_model("initial-exec")))
#else
#define DRHMM_THREAD_LOCAL thread_local
#endif

namespace drhmm {

// Thrown in a thread whose work is no longer needed because another one failed. Never leaves parallel_for.
struct Stopped : std::exception {
  const char* what() const noexcept override { return "stopped"; }
};

// The hook of the thread's caller; it throws to stop the work. None by default.
inline DRHMM_THREAD_LOCAL void (*interruption_hook)() = nullptr;
// Set when another thread of the same work has failed.
inline DRHMM_THREAD_LOCAL const std::atomic<bool>* stop_flag = nullptr;

// Sets the hook of this thread during its lifetime.
class InterruptionScope {
 public:
  explicit InterruptionScope(void (*hook)()) : before_(interruption_hook) { interruption_hook = hook; }
  ~InterruptionScope() { interruption_hook = before_; }
  InterruptionScope(const InterruptionScope&) = delete;
  InterruptionScope& operator=(const InterruptionScope&) = delete;

 private:
  void (*before_)();
};

class StopScope {
 public:
  explicit StopScope(const std::atomic<bool>& flag) : before_(stop_flag) { stop_flag = &flag; }
  ~StopScope() { stop_flag = before_; }
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  const std::atomic<bool>* before_;
};

constexpr int kFramesBetweenChecks = 256;

inline void check_interruption() {
  if (stop_flag != nullptr && stop_flag->load(std::memory_order_relaxed)) throw Stopped();
  if (interruption_hook != nullptr) interruption_hook();
}

}  // namespace drhmm
