// The arrays of a memory case: what they hold, who owns which part, and how the system keeps them.
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

// Equal parts, whole cache lines each, whole pages where parts are large; `elements` is a multiple of a line.
std::vector<Slice> split(std::size_t elements, int parts);

// Fills each slice by the thread that will use it, which so touches it first.
void fill_input(double* data, int array, const cpu::Team& team, const std::vector<Slice>& slices);
// NaN, so that an element that no loop wrote shows.
void fill_output(double* data, const cpu::Team& team, const std::vector<Slice>& slices);

// "4KiB", "2MiB", or "mixed": pages behind touched buffers, from /proc/self/smaps; "unknown" without it.
std::string page_size_of(const std::vector<const Buffer*>& buffers);
// "first_touch", or the policy that the process was started with: "bind", "interleave", "preferred".
std::string numa_policy();

}  // namespace assay::memory
