// Collectives in groups of ranks side by side: of hosts, to find those that are slow whatever their partners are, and
// of rails.
#pragma once

#include "suites/collective/layout.h"
#include "suites/collective/pairwise.h"

#include <memory>
#include <optional>

namespace assay::collective {

inline constexpr const char* groups_op = "groups";

// op=groups (no `op`): all ranks of a host stay together, and each rank of a single host counts as a host. The hosts
// are split as random_groupings() says, by the seed of the case; in each grouping all groups run the all-reduce at the
// same time, each at its own pace. PairwiseParams::rails: the ranks of one number of every host make the call `op`
// together, all such rails at the same time, each at its own pace. The record holds the busbw of each group.
std::unique_ptr<Case> make_groups(const PairwiseParams& params, std::optional<Op> op);

}  // namespace assay::collective
