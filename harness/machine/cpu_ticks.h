// CPU time since boot, as the kernel counts it.
#pragma once

#include "harness/machine/root.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace assay {

// Clock ticks summed over CPUs: busy (including steal), steal, total.
struct CpuTicks {
  std::int64_t busy = 0;
  std::int64_t steal = 0;
  std::int64_t total = 0;
};

// Sums the ticks of `cpus` (empty: all) in /proc/stat; absent if the file lacks them.
std::optional<CpuTicks> cpu_ticks(const Root& root, const std::vector<int>& cpus);

}  // namespace assay
