// clflushopt, or clflush, which every x86-64 processor has (Intel SDM vol. 2A; AMD APM vol. 3).
#include "harness/device/cpu/evict.h"

#include <cpuid.h>
#include <immintrin.h>

namespace assay::cpu {

namespace {

constexpr std::uintptr_t line_bytes = 64;

bool has_clflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_CLFLUSHOPT) != 0;
}

__attribute__((target("clflushopt"))) void evict_unordered(const std::byte* first, const std::byte* end) {
  // The instruction takes a pointer to what it may write back.
  for (; first < end; first += line_bytes) _mm_clflushopt(const_cast<std::byte*>(first));
}

void evict_ordered(const std::byte* first, const std::byte* end) {
  for (; first < end; first += line_bytes) _mm_clflush(first);
}

}  // namespace

void evict_lines(MemoryRange range) {
  static const bool unordered = has_clflushopt();
  const std::byte* const first = range.data() - reinterpret_cast<std::uintptr_t>(range.data()) % line_bytes;
  (unordered ? evict_unordered : evict_ordered)(first, range.data() + range.size());
  _mm_mfence();
}

}  // namespace assay::cpu
