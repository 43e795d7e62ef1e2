// The cores, caches, NUMA nodes and page sizes that this process may use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cpu {

struct Core {
  std::vector<int> cpus;  // logical CPUs (SMT siblings) by OS number
  int package = 0;
  int numa_node = 0;  // OS number
};

struct Cache {
  int level = 0;
  std::string type;  // unified, data, instruction
  std::uint64_t bytes = 0;
  int line_bytes = 0;
  std::vector<int> cpus;  // CPUs that share it
};

struct NumaNode {
  int number = 0;  // the operating system's number
  std::uint64_t bytes = 0;
  std::vector<int> cpus;
};

struct Topology {
  int packages = 0;
  std::vector<Core> cores;    // physical neighbours are adjacent
  std::vector<Cache> caches;  // one entry per instance, from level 1 up
  std::vector<NumaNode> numa_nodes;
  std::string transparent_huge_pages;  // always, madvise, never; empty: the kernel has none

  // Bytes of the last-level caches of these CPUs, each instance counted once.
  std::uint64_t last_level_cache_bytes(const std::vector<int>& cpus) const;
  // Bytes of one CPU's data cache of a level; 0 if there is none.
  std::uint64_t cache_bytes(int level, int cpu) const;
};

// "48K", "480M" as sysfs writes the size of a cache: bytes; 0 if it does not begin with a number.
std::uint64_t cache_size(std::string_view text);

// Read once, then cached; sizes of caches from $ASSAY_ROOT where it has them. CPUs outside the process's cgroup are
// left out.
const Topology& topology();

}  // namespace assay::cpu
