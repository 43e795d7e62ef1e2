// How much memory and CPU time the machine, cgroups (v1 and v2) and rlimits leave this process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace assay::cpu {

struct MemoryLimits {
  std::uint64_t machine_total = 0;                   // MemTotal
  std::uint64_t machine_available = 0;               // MemAvailable
  std::optional<std::uint64_t> cgroup_limit;         // the tightest of this process's group and its ancestors
  std::optional<std::uint64_t> cgroup_available;     // the least room in any of them; reclaimable file cache is free
  std::optional<std::uint64_t> address_space_limit;  // RLIMIT_AS
  std::optional<std::uint64_t> address_space_available;  // minus what is mapped already

  // The most memory this process could ever have.
  std::uint64_t usable() const;
  // Bytes that this process could still allocate now.
  std::uint64_t available() const;
};

// `root` is where /proc and /sys are, for tests. A limit that cannot be read is absent (or 0).
MemoryLimits memory_limits(const std::filesystem::path& root = "/");

// The cgroups' CPU quota in CPUs (cpu.max, cpu.cfs_quota_us); absent if there is none.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

// CPU seconds for which threads of this process's cgroups were held back by a quota, since they exist (throttled_usec,
// throttled_time); absent if no group counts it.
std::optional<double> throttled_cpu_seconds(const std::filesystem::path& root = "/");

}  // namespace assay::cpu
