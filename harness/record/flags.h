// The flags of records that programs read (docs/records.md). All others are remarks for people.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace assay::flag {

inline constexpr std::string_view oversubscribed = "oversubscribed";  // more ranks or workers than CPUs
inline constexpr std::string_view shared_gpu = "shared GPU";
inline constexpr std::string_view one_machine = "hosts are one machine";
inline constexpr std::string_view emulated_gpu = "emulated GPU: not a measurement";
inline constexpr std::string_view described_machine = "ASSAY_ROOT: the machine described is a folder of files";
inline constexpr std::string_view does_not_fit = "does not fit";  // skipped for lack of memory: the end of a sweep
inline constexpr std::string_view timed_out = "timed out";        // broken: its workers did not answer in time

// EFA and some RoCE cards count differently, or a virtual machine hides which port is beside which GPU.
inline constexpr std::string_view unproven_rails =
    "no port counters: on some host nothing tells which port carried its rails";

// These begin a flag.
inline constexpr std::string_view idle_port = "idle port:";  // PortTraffic::too_little()
inline constexpr std::string_view beyond_plan = "memory beyond the plan";
inline constexpr std::string_view injected = "injected:";  // and the fault's name
inline constexpr std::string_view gpu_slowed_down = "GPU slowed down";
inline constexpr std::string_view slow_rank = "slow rank: rank ";  // and its number

inline bool has(const std::vector<std::string>& flags, std::string_view flag) {
  return std::ranges::find(flags, flag) != flags.end();
}

inline bool has_prefix(const std::vector<std::string>& flags, std::string_view prefix) {
  return std::ranges::any_of(flags, [&](const std::string& flag) { return flag.starts_with(prefix); });
}

}  // namespace assay::flag
