// Keeps the memory of large result arrays that Python has freed, and reuses it for the next ones. A fresh page, which
// the system must find and clear, costs more than computing the numbers in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace drhmm::bindings {

class AnswerMemory {
 public:
  static constexpr std::size_t kSmallest = std::size_t{1} << 17;  // bytes; smaller arrays gain nothing
  static constexpr std::size_t kMostKept = std::size_t{1} << 26;  // bytes, in all

  // Returns at least this many bytes, aligned for any number. The largest size is half of the range of std::size_t.
  // Throws std::bad_alloc.
  static void* take(std::size_t bytes) {
    if (Block* const kept = take_kept(bytes)) return data(kept);
    try {
      return data(fresh(bytes));
    } catch (const std::bad_alloc&) {
      release_kept();  // this may free enough
      return data(fresh(bytes));
    }
  }

  static void give_back(void* memory) noexcept {
    Block* const block = reinterpret_cast<Block*>(static_cast<std::byte*>(memory) - kHeader);
    if (!keep(block)) release(block);
  }

 private:
  static constexpr std::size_t kHeader = 64;  // in front of the data, which have the same alignment
  static constexpr std::size_t kMostBlocks = 64;
  struct Block {
    std::size_t bytes;
  };
  struct Kept {
    std::mutex mutex;
    std::vector<Block*> blocks;
    std::size_t bytes = 0;

    Kept() { blocks.reserve(kMostBlocks); }  // keeping never needs memory
  };

  // Never destroyed: Python may free arrays after this library is done. If another thread uses it, or did when the
  // process forked, callers allocate instead of waiting.
  static Kept& kept() {
    static Kept* const all = new Kept;
    return *all;
  }

  static void* data(Block* block) { return reinterpret_cast<std::byte*>(block) + kHeader; }

  // The smallest block that is large enough, and not so large that most of it would be wasted.
  static Block* take_kept(std::size_t bytes) {
    Kept& all = kept();
    const std::unique_lock<std::mutex> lock(all.mutex, std::try_to_lock);
    if (!lock.owns_lock()) return nullptr;
    auto best = all.blocks.end();
    for (auto one = all.blocks.begin(); one != all.blocks.end(); ++one) {
      const bool fits = (*one)->bytes >= bytes && (*one)->bytes / 2 <= bytes;
      if (fits && (best == all.blocks.end() || (*one)->bytes < (*best)->bytes)) best = one;
    }
    if (best == all.blocks.end()) return nullptr;
    Block* const block = *best;
    all.blocks.erase(best);
    all.bytes -= block->bytes;
    return block;
  }

  // Drops the oldest blocks to make room. False if there still is no room.
  static bool keep(Block* block) noexcept {
    if (block->bytes > kMostKept) return false;
    Kept& all = kept();
    const std::unique_lock<std::mutex> lock(all.mutex, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    while (!all.blocks.empty() && (all.blocks.size() == kMostBlocks || all.bytes + block->bytes > kMostKept)) {
      all.bytes -= all.blocks.front()->bytes;
      release(all.blocks.front());
      all.blocks.erase(all.blocks.begin());
    }
    all.blocks.push_back(block);
    all.bytes += block->bytes;
    return true;
  }

  static void release_kept() noexcept {
    Kept& all = kept();
    const std::unique_lock<std::mutex> lock(all.mutex, std::try_to_lock);
    if (!lock.owns_lock()) return;
    for (Block* const block : all.blocks) release(block);
    all.blocks.clear();
    all.bytes = 0;
  }

  static Block* fresh(std::size_t bytes) {
    void* const memory = ::operator new(kHeader + bytes, std::align_val_t{kHeader});
    advise_large_pages(memory, kHeader + bytes);
    return new (memory) Block{bytes};
  }

  static void release(Block* block) noexcept { ::operator delete(block, std::align_val_t{kHeader}); }

  // Asks for fewer, larger pages, as numpy does.
  static void advise_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr std::uintptr_t kPage = 4096;
    if (bytes < std::size_t{1} << 22) return;
    const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(memory) + kPage - 1) / kPage * kPage;
    const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / kPage * kPage;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
  }
};

}  // namespace drhmm::bindings
