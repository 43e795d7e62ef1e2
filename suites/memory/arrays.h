// The arrays of a memory case: contents, split between threads, and the pages behind them.
#pragma once

#include "harness/core/error.h"
#include "harness/core/rng.h"
#include "harness/device/cpu/team.h"
#include "harness/device/device.h"
#include "harness/plan/params.h"
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

// Parameters of memory cases, common to all devices.
inline const OpInfo& info_of(const Params& params) {
  for (const OpInfo& info : ops)
    if (info.name == params.text("op")) return info;
  throw Error("memory: unknown op " + params.text("op"));
}

// The requested bytes, rounded down to whole cache lines.
inline std::size_t elements_of(const Params& params) {
  return static_cast<std::size_t>(params.integer("bytes")) / line_bytes * doubles_per_line;
}

// Pointer chasing: each load depends on the previous one, so that their time is the memory's latency.

// One cache line: the target of the next hop, and this line's position in the cycle.
struct alignas(64) Line {
  const Line* next;
  std::uint64_t place;
};

// Links `count` lines into one cycle in random order (a Fisher-Yates shuffle), starting at lines[0]. Takes one more
// word of memory per line meanwhile.
void link_cycle(Line* lines, std::size_t count, const Rng& rng);

// Follows the cycle for `hops` loads and returns the line reached.
const Line* chase(const Line* from, std::uint64_t hops);

// The number of lines that a walk from lines[0] does not visit in order, once each.
std::uint64_t wrong_lines(const Line* lines, std::size_t count);

}  // namespace assay::memory
