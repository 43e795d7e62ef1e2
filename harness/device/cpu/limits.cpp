// Reads /proc/meminfo, the cgroup files of this process's groups and their ancestors, and RLIMIT_AS.
#include "harness/device/cpu/limits.h"

#include <fmt/format.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cpu {

namespace fs = std::filesystem;

namespace {

// cgroup v1 writes "no limit" as the largest multiple of a page below 2^63.
constexpr std::uint64_t no_limit = std::uint64_t{1} << 60;

std::optional<std::string> first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  std::istringstream stream{std::string(text)};
  if (text.empty() || text.front() == '-' || !(stream >> value)) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number_in(const fs::path& path) {
  const auto line = first_line(path);
  return line ? number(*line) : std::nullopt;
}

// The value after `key` in a file of "key value" lines, such as memory.stat and /proc/meminfo.
std::optional<std::uint64_t> entry(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream stream(line);
    std::string name;
    std::uint64_t value = 0;
    if (stream >> name >> value && name == key) return value;
  }
  return std::nullopt;
}

struct Group {
  fs::path folder;  // this process's group
  fs::path top;     // where the controller's tree is mounted
  bool unified = false;
};

// This process's groups that may contain `controller`: in v1's own tree and in the unified one. In a container the path
// is the host's but the mount shows only the part below it: then the mount is the group.
std::vector<Group> groups_of(const fs::path& root, std::string_view controller) {
  std::vector<Group> groups;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);  // "cpu,cpuacct"; v2: empty
    const std::string path = line.substr(second + 1);
    const bool unified = controllers.empty();
    const std::string listed = fmt::format(",{},", controllers);
    if (!unified && listed.find(fmt::format(",{},", controller)) == std::string::npos) continue;

    const fs::path mounts = root / "sys/fs/cgroup";
    std::vector<fs::path> tops;
    if (unified)
      tops = {mounts, mounts / "unified"};
    else
      tops = {mounts / controllers, mounts / controller};
    std::error_code none;
    for (const fs::path& top : tops) {
      if (!fs::is_directory(top, none)) continue;
      if (unified && !fs::exists(top / "cgroup.controllers", none)) continue;
      const fs::path folder = top / fs::path(path).relative_path();
      groups.push_back({fs::is_directory(folder, none) ? folder : top, top, unified});
      break;
    }
  }
  return groups;
}

// Calls fn with the group's folder and its ancestors, up to the mount.
void for_ancestors(const Group& group, const std::function<void(const fs::path&)>& fn) {
  for (fs::path folder = group.folder;; folder = folder.parent_path()) {
    if (!folder.has_filename()) folder = folder.parent_path();  // "…/memory/" names the same folder as "…/memory"
    fn(folder);
    if (folder == group.top || folder == folder.root_path() || folder.empty()) return;
  }
}

void keep_min(std::optional<std::uint64_t>& least, std::uint64_t value) {
  least = least ? std::min(*least, value) : value;
}

}  // namespace

std::uint64_t MemoryLimits::usable() const {
  std::uint64_t bytes = machine_total;
  for (const auto& limit : {cgroup_limit, address_space_limit})
    if (limit) bytes = std::min(bytes, *limit);
  return bytes;
}

std::uint64_t MemoryLimits::available() const {
  std::uint64_t bytes = machine_available;
  for (const auto& limit : {cgroup_available, address_space_available})
    if (limit) bytes = std::min(bytes, *limit);
  return bytes;
}

MemoryLimits memory_limits(const fs::path& root) {
  MemoryLimits limits;
  limits.machine_total = entry(root / "proc/meminfo", "MemTotal:").value_or(0) * 1024;
  limits.machine_available = entry(root / "proc/meminfo", "MemAvailable:").value_or(0) * 1024;

  for (const Group& group : groups_of(root, "memory"))
    for_ancestors(group, [&](const fs::path& folder) {
      const auto limit = number_in(folder / (group.unified ? "memory.max" : "memory.limit_in_bytes"));
      if (!limit || *limit >= no_limit) return;
      keep_min(limits.cgroup_limit, *limit);
      const std::uint64_t used =
          number_in(folder / (group.unified ? "memory.current" : "memory.usage_in_bytes")).value_or(0);
      const std::uint64_t cache =
          entry(folder / "memory.stat", group.unified ? "inactive_file" : "total_inactive_file").value_or(0);
      const std::uint64_t held = used > cache ? used - cache : 0;
      keep_min(limits.cgroup_available, *limit > held ? *limit - held : 0);
    });

  rlimit address_space{};
  if (getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur != RLIM_INFINITY) {
    limits.address_space_limit = address_space.rlim_cur;
    const std::uint64_t mapped =
        number_in(root / "proc/self/statm").value_or(0) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    limits.address_space_available = address_space.rlim_cur > mapped ? address_space.rlim_cur - mapped : 0;
  }
  return limits;
}

std::optional<double> cpu_quota(const fs::path& root) {
  std::optional<double> least;
  for (const Group& group : groups_of(root, "cpu"))
    for_ancestors(group, [&](const fs::path& folder) {
      std::optional<std::uint64_t> quota, period;
      if (group.unified) {
        std::istringstream line(first_line(folder / "cpu.max").value_or("max"));
        std::string first, second;
        line >> first >> second;
        quota = number(first);  // "max": none
        period = number(second);
      } else {
        quota = number_in(folder / "cpu.cfs_quota_us");  // -1: none
        period = number_in(folder / "cpu.cfs_period_us");
      }
      if (!quota || !period || *period == 0) return;
      const double cpus = static_cast<double>(*quota) / static_cast<double>(*period);
      least = least ? std::min(*least, cpus) : cpus;
    });
  return least;
}

std::optional<double> throttled_cpu_seconds(const fs::path& root) {
  std::optional<double> sum;
  for (const Group& group : groups_of(root, "cpu"))
    for_ancestors(group, [&](const fs::path& folder) {
      const auto time = entry(folder / "cpu.stat", group.unified ? "throttled_usec" : "throttled_time");
      if (time) sum = sum.value_or(0) + static_cast<double>(*time) * (group.unified ? 1e-6 : 1e-9);
    });
  return sum;
}

}  // namespace assay::cpu
