// Long loops ask now and then whether they should stop.
#pragma once

#include <atomic>
#include <exception>

// Thread-local data of a library that is loaded late gets its memory when a thread first touches it, and where there is
// none glibc aborts. In this model it is there as soon as the thread is.
#if defined(__linux__) && defined(__GNUC__)
#define DRHMM_THREAD_LOCAL thread_local __attribute__((tls_model("initial-exec")))
#else
#define DRHMM_THREAD_LOCAL thread_local
#endif

namespace drhmm {

// The work of a thread is no longer wanted, as another one failed; never leaves parallel_for.
struct Stopped : std::exception {
  const char* what() const noexcept override { return "stopped"; }
};

// What the caller of a thread's work wants to be asked; throws to stop it. Nothing by default.
inline DRHMM_THREAD_LOCAL void (*interruption_hook)() = nullptr;
// Raised when other threads of the same work have failed.
inline DRHMM_THREAD_LOCAL const std::atomic<bool>* stop_flag = nullptr;

// Sets the hook of this thread for as long as it lives.
class InterruptionScope {
 public:
  explicit InterruptionScope(void (*hook)()) : before_(interruption_hook) { interruption_hook = hook; }
  ~InterruptionScope() { interruption_hook = before_; }
  InterruptionScope(const InterruptionScope&) = delete;
  InterruptionScope& operator=(const InterruptionScope&) = delete;

 private:
  void (*before_)();
};

// The same for the flag.
class StopScope {
 public:
  explicit StopScope(const std::atomic<bool>& flag) : before_(stop_flag) { stop_flag = &flag; }
  ~StopScope() { stop_flag = before_; }
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  const std::atomic<bool>* before_;
};

// Frames after which a recursion asks.
constexpr int kFramesBetweenChecks = 256;

inline void check_interruption() {
  if (stop_flag != nullptr && stop_flag->load(std::memory_order_relaxed)) throw Stopped();
  if (interruption_hook != nullptr) interruption_hook();
}

}  // namespace drhmm
