// dc civac: clean and invalidate by address to the point of coherency (Arm ARM, C5.3), which Linux allows in user
// space.
#include "harness/device/cpu/evict.h"

namespace assay::cpu {

void evict_lines(MemoryRange range) {
  std::uint64_t type = 0;
  asm volatile("mrs %0, ctr_el0" : "=r"(type));
  const std::uintptr_t line = std::uintptr_t{4}
                              << ((type >> 16) & 0xf);  // of the smallest data cache line: words, log 2
  const auto start = reinterpret_cast<std::uintptr_t>(range.data());
  for (std::uintptr_t at = start - start % line; at < start + range.size(); at += line)
    asm volatile("dc civac, %0" : : "r"(at) : "memory");
  asm volatile("dsb sy" : : : "memory");
}

}  // namespace assay::cpu
