// Which CPUs each rank of a host gets.
#pragma once

#include <vector>

namespace assay {

// The CPUs of one of `local_size` ranks on this host; `cores` lists the usable logical CPUs of each core, neighbours
// next to each other. Whole cores if there are enough, else single CPUs, else shared ones (oversubscription).
std::vector<int> cpu_share(const std::vector<std::vector<int>>& cores, int local_rank, int local_size);

// The cores that this process may use, each with its CPUs within the affinity mask.
std::vector<std::vector<int>> usable_cores();
// How many ranks can have a core each, within the cgroup's CPU quota.
int usable_core_count();
int usable_cpu_count();

}  // namespace assay
