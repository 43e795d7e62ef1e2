// All-reduce in groups of hosts side by side, to find hosts that are slow whatever their partners are.
#pragma once

#include "suites/collective/pairwise.h"

#include <memory>

namespace assay::collective {

inline constexpr const char* groups_op = "groups";

// All ranks of a host stay together, and each rank of a single host counts as a host. The hosts are split as
// random_groupings() says, by the seed of the case; in each grouping all groups run the all-reduce at the same time,
// each at its own pace. The record holds the busbw of each group.
std::unique_ptr<Case> make_groups(const PairwiseParams& params);

}  // namespace assay::collective
