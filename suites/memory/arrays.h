// The arrays of a memory case: contents, split between threads, and the pages behind them.
#pragma once

#include "harness/device/cpu/team.h"
#include "harness/device/device.h"
#include "suites/memory/values.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::memory {

inline constexpr std::size_t line_bytes = 64;
inline constexpr std::size_t doubles_per_line = line_bytes / sizeof(double);

// One thread's part of an array, in elements.
struct Slice {
  std::size_t first = 0;
  std::size_t count = 0;
};

// Equal parts of whole cache lines, or of whole pages if they are large; `elements` is a multiple of a line.
std::vector<Slice> split(std::size_t elements, int parts);

// Each thread fills the slice that it will use, so that it touches those pages first.
void fill_input(double* data, int array, const cpu::Team& team, const std::vector<Slice>& slices);
// NaN, so that elements that no loop wrote are noticed.
void fill_output(double* data, const cpu::Team& team, const std::vector<Slice>& slices);

// "4KiB", "2MiB", or "mixed": the page size of touched buffers, from /proc/self/smaps; "unknown" without it.
std::string page_size_of(const std::vector<const Buffer*>& buffers);
// "first_touch", or the process's policy: "bind", "interleave", "preferred".
std::string numa_policy();

}  // namespace assay::memory
