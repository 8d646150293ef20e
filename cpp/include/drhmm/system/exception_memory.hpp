// Reserves the memory that C++ exceptions need in each thread, while there is memory.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <exception>

namespace drhmm {

// Whether this thread can throw and catch. Python's extensions load the C++ library late, so glibc allocates its
// thread-local data when a thread first throws, and aborts if there is no memory. So we ask malloc first. The blocks
// that we free stay in the cache of this thread, one of each small size, out of reach of other threads.
inline bool make_exception_memory() noexcept {
#ifdef __GLIBC__
  constexpr std::size_t kFirst = 4096, kLargest = 512, kStep = 16;  // the data take 32 bytes
  for (std::size_t size = kFirst; size > 0; size = size == kFirst ? kLargest : size - kStep) {
    void* volatile block = std::malloc(size);  // volatile: the compiler must keep it
    if (block == nullptr) return false;
    std::free(block);
  }
#endif
  (void)std::uncaught_exceptions();
  return true;
}

}  // namespace drhmm
