// A vector whose storage starts on a cache line, as the vector loads of the kernels like it; large ones on huge pages.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace fedsel {

template <class T>
struct CacheLineAllocator {
  using value_type = T;
  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}
  T* allocate(std::size_t n) {
    if (n > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    void* p = ::operator new(n * sizeof(T), alignment(n));
#if defined(__linux__)
    // Rows of large pools are read at random: a page of 4 KB a lookup would cost about as much as the memory itself.
    // Only advice; where the system does not follow it, nothing is lost but time.
    if (n * sizeof(T) >= kHugePage) madvise(p, n * sizeof(T), MADV_HUGEPAGE);
#endif
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t n) { ::operator delete(p, alignment(n)); }
  bool operator==(const CacheLineAllocator&) const { return true; }

 private:
  static constexpr std::size_t kHugePage = std::size_t{1} << 21;
  static std::align_val_t alignment(std::size_t n) {
    return std::align_val_t{n * sizeof(T) >= kHugePage ? kHugePage : 64};
  }
};

template <class T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace fedsel
