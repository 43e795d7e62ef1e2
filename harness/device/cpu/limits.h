// What this process may use: memory and CPU time as the machine, its cgroups (v1 and v2) and rlimits allow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace assay::cpu {

struct MemoryLimits {
  std::uint64_t machine_total = 0;                // MemTotal
  std::uint64_t machine_available = 0;            // MemAvailable
  std::optional<std::uint64_t> cgroup_limit;      // the tightest on the way up from this process's group
  std::optional<std::uint64_t> cgroup_available;  // the least room on that way, reclaimable file cache counted as free
  std::optional<std::uint64_t> address_space_limit;      // RLIMIT_AS
  std::optional<std::uint64_t> address_space_available;  // less what is mapped already

  // The most that this process could ever hold.
  std::uint64_t usable() const;
  // What it could still get now.
  std::uint64_t available() const;
};

// `root` is where /proc and /sys are found; tests give a folder of their own. What cannot be read is absent (or 0).
MemoryLimits memory_limits(const std::filesystem::path& root = "/");

// CPUs' worth of time that the cgroups' quota grants (cpu.max, cpu.cfs_quota_us); absent when there is none.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

}  // namespace assay::cpu
