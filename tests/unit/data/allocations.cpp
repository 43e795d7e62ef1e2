// Overrides glibc's malloc and friends for the whole program; operator new uses them too.
#include "tests/unit/data/allocations.h"

#include <atomic>
#include <cstddef>

namespace {
std::atomic<std::uint64_t> count{0};
}

namespace assay::data::test {
std::uint64_t allocations() { return count; }
}  // namespace assay::data::test

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  ++count;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t number, std::size_t bytes) {
  ++count;
  return __libc_calloc(number, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  ++count;
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ++count;
  return __libc_memalign(alignment, bytes);
}
}
