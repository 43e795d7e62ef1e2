// What Slurm's variables say of an allocation.
#pragma once

#include "harness/hosts/allocation.h"

#include <string>
#include <string_view>
#include <vector>

namespace assay {

// "n[1-3,07],m2" as n1, n2, n3, n07, m2; several brackets a name are crossed, the first varies slowest. Throws
// UsageError naming `variable` when the list makes no sense or names more than 65,536 hosts.
std::vector<std::string> parse_node_list(std::string_view text, const std::string& variable);

// "2(x3),1" as 2, 2, 2, 1. Throws UsageError as above.
std::vector<int> parse_tasks_per_node(std::string_view text, const std::string& variable);

// The hosts of the job, or of the step where srun started this process as one of its tasks; absent outside Slurm. Slots
// are given only where the job says how many tasks it wants.
std::optional<Allocation> slurm_allocation(const Environment& environment);

}  // namespace assay
