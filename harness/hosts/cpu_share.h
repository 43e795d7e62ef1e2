// Which CPUs each rank of a host gets.
#pragma once

#include <vector>

namespace assay {

// CPUs of one rank out of `local_size` on this host; `cores` lists the usable logical CPUs of each core, neighbours
// next to each other. Whole cores while there are enough, else single CPUs, else shared ones (oversubscription).
std::vector<int> cpu_share(const std::vector<std::vector<int>>& cores, int local_rank, int local_size);

// The cores this process may use, each with those of its CPUs that are in the affinity mask.
std::vector<std::vector<int>> usable_cores();
// How many ranks have a core of their own here; the cgroup's CPU quota counts too.
int usable_core_count();
int usable_cpu_count();

}  // namespace assay
