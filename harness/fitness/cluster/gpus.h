// Judges what the GPUs of one host reach: each alone, all at once, and between every two of them.
#pragma once

#include "harness/fitness/cluster/cluster.h"
#include "harness/runs/run_set.h"

#include <string>
#include <vector>

namespace assay::fitness {

// The rank on this host that took longest, else its only one; null: none.
const RankResult* slowest_rank(const Record& record, const std::string& host);
// The ranks of a record of one host that are beyond the limit by themselves, else the slowest; empty without ranks.
std::vector<const RankResult*> slow_ranks(const Record& record, const Floor& floor, double limit,
                                          const std::string& host);

// Adds to each host what all of its GPUs (on CPUs: ranks) at once reach of what each reaches alone, by cases that ran
// both ways, and the figures and sensors of GPUs that are to blame. It needs those: call it after floors were judged.
void tell_gpus(const RunSet& runs, const std::vector<std::string>& hosts, HostChecks& checks);

// Copies between GPUs: pairs that reach less than the share of what is usual, or that have no access where it is usual.
// Usual is the median of the same pair on three hosts or more; on fewer, that of the host's pairs if three quarters of
// them are alike. A GPU of which every pair is slow is named itself. Of a case measured twice the better figures count.
// Returns a remark that names the hosts with pairs of which nobody can say what is usual; empty if there is none.
std::string judge_gpu_pairs(const RunSet& runs, const std::vector<std::string>& hosts, double share,
                            HostChecks& checks);

}  // namespace assay::fitness
