// Memory that is kept between calls, and objects that are made on first use.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace drhmm {

// An object that is made on first use. It uses no lock: a fork could copy one that is held.
template <class Thing>
class Lazy {
 public:
  Lazy() = default;
  ~Lazy() { delete made_.load(); }
  Lazy(const Lazy&) = delete;
  Lazy& operator=(const Lazy&) = delete;

  template <class Make>
  const Thing& get(const Make& make) const {
    const Thing* thing = made_.load(std::memory_order_acquire);
    if (thing != nullptr) return *thing;
    auto fresh = std::make_unique<const Thing>(make());
    if (made_.compare_exchange_strong(thing, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
    return *thing;  // another thread was faster
  }

 private:
  mutable std::atomic<const Thing*> made_{nullptr};
};

// Memory for at least `size` objects, during its lifetime. Fresh pages cost more than their use here, so a few released
// blocks are kept and reused, in any thread. Not thread-local: glibc aborts if memory for the thread-local data of a
// library is missing.
template <class Object>
class KeptMemory {
 public:
  explicit KeptMemory(std::size_t size) {
    // If another thread holds the list, or held it during a fork, allocate instead of waiting.
    if (const std::unique_lock<std::mutex> lock(mutex(), std::try_to_lock); lock.owns_lock() && !kept().empty()) {
      memory_ = std::move(kept().back());
      kept().pop_back();
    }
    if (memory_.size() < size) memory_ = std::vector<Object>(size);
  }
  ~KeptMemory() {
    if (memory_.size() > kLargest / sizeof(Object)) return;
    const std::unique_lock<std::mutex> lock(mutex(), std::try_to_lock);
    if (lock.owns_lock() && kept().size() < kMost) kept().push_back(std::move(memory_));
  }
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  Object* data() { return memory_.data(); }
  const Object* data() const { return memory_.data(); }

 private:
  static constexpr std::size_t kMost = 4;                        // blocks
  static constexpr std::size_t kLargest = std::size_t{1} << 24;  // bytes; longer work does not notice fresh pages

  // Neither is destroyed: a daemon thread of Python may still run when the process ends.
  static std::mutex& mutex() {
    static std::mutex* const one = new std::mutex;
    return *one;
  }
  static std::vector<std::vector<Object>>& kept() {
    static std::vector<std::vector<Object>>* const blocks = [] {
      auto* const room = new std::vector<std::vector<Object>>;
      room->reserve(kMost);  // giving back never allocates
      return room;
    }();
    return *blocks;
  }

  std::vector<Object> memory_;
};

}  // namespace drhmm
