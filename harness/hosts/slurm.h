// An allocation from Slurm's variables.
#pragma once

#include "harness/hosts/allocation.h"

#include <string>
#include <string_view>
#include <vector>

namespace assay {

// "n[1-3,07],m2" as n1, n2, n3, n07, m2; with several brackets in a name, every combination, the first bracket varying
// slowest. Throws UsageError that names `variable` when the list is malformed or has more than 65,536 hosts.
std::vector<std::string> parse_node_list(std::string_view text, const std::string& variable);

// The shortest such list of these names, each once: "m2,n[1-3,07]". Only a number at a name's end is put in brackets.
std::string node_list(const std::vector<std::string>& names);

// "2(x3),1" as 2, 2, 2, 1. Throws UsageError as above.
std::vector<int> parse_tasks_per_node(std::string_view text, const std::string& variable);

// The hosts of the job, or of the step if srun started this process as a task; absent outside Slurm. Slots are set only
// if the job asked for a number of tasks.
std::optional<Allocation> slurm_allocation(const Environment& environment);

}  // namespace assay
