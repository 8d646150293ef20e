// What C++ exceptions keep in each thread, made while there is memory for it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <exception>

namespace drhmm {

// Whether this thread can throw and catch. The C++ library is loaded late, with Python's extensions: glibc takes the
// memory of its thread-local data when a thread first throws, and aborts where there is none. So malloc is asked first.
// What it has given and got back stays in the cache of this thread, one block of each small size, out of reach of
// others.
inline bool make_exception_memory() noexcept {
#ifdef __GLIBC__
  constexpr std::size_t kFirst = 4096, kLargest = 512, kStep = 16;  // the data have 32 bytes
  for (std::size_t size = kFirst; size > 0; size = size == kFirst ? kLargest : size - kStep) {
    void* volatile block = std::malloc(size);  // volatile: not left out
    if (block == nullptr) return false;
    std::free(block);
  }
#endif
  (void)std::uncaught_exceptions();
  return true;
}

}  // namespace drhmm
