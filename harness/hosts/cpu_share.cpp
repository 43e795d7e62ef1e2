// Division of a host's CPUs between its ranks.
#include "harness/hosts/cpu_share.h"

#include "harness/device/cpu/limits.h"
#include "harness/device/cpu/team.h"
#include "harness/device/cpu/topology.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace assay {

std::vector<int> cpu_share(const std::vector<std::vector<int>>& cores, int local_rank, int local_size) {
  const auto rank = static_cast<std::size_t>(local_rank);
  const auto ranks = static_cast<std::size_t>(local_size);
  std::vector<int> mine;
  if (ranks <= cores.size()) {
    for (std::size_t i = rank * cores.size() / ranks; i < (rank + 1) * cores.size() / ranks; ++i)
      mine.insert(mine.end(), cores[i].begin(), cores[i].end());
    return mine;
  }
  std::vector<int> cpus;
  for (const auto& core : cores) cpus.insert(cpus.end(), core.begin(), core.end());
  if (cpus.empty()) return mine;
  if (ranks > cpus.size()) return {cpus[rank % cpus.size()]};
  for (std::size_t i = rank * cpus.size() / ranks; i < (rank + 1) * cpus.size() / ranks; ++i) mine.push_back(cpus[i]);
  return mine;
}

std::vector<std::vector<int>> usable_cores() {
  const std::set<int> allowed(cpu::rank_cpus().begin(), cpu::rank_cpus().end());
  std::vector<std::vector<int>> cores;
  for (const cpu::Core& core : cpu::topology().cores) {
    std::vector<int> cpus;
    for (const int cpu : core.cpus)
      if (allowed.contains(cpu)) cpus.push_back(cpu);
    if (!cpus.empty()) cores.push_back(std::move(cpus));
  }
  return cores;
}

int usable_core_count() {
  const int cores = std::max(1, static_cast<int>(usable_cores().size()));
  const auto quota = cpu::cpu_quota();
  return quota ? std::clamp(static_cast<int>(std::ceil(*quota)), 1, cores) : cores;
}

int usable_cpu_count() {
  int count = 0;
  for (const auto& core : usable_cores()) count += static_cast<int>(core.size());
  return std::max(1, count);
}

}  // namespace assay
