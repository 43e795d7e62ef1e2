// Training that every host does by itself, from the same seed: do all have the same loss?
#pragma once

#include "harness/fitness/cluster/cluster.h"
#include "harness/runs/run_set.h"

#include <string>
#include <vector>

namespace assay::fitness {

// The largest relative difference of losses after ten steps that other kernels, or sums in another order, explain.
inline constexpr double other_kernels = 0.01;

// Compares the losses after ten steps of each training case that several hosts ran. Hosts with equal kernels and ops
// that repeat their bits must have equal losses, all others nearly so. A host that differs from more than half of those
// it is compared with fails; without such a majority all are inconclusive.
void judge_equal_losses(const RunSet& runs, const std::vector<std::string>& hosts, HostChecks& checks);

}  // namespace assay::fitness
