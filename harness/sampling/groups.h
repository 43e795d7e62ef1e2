// Splits hosts at random into groups that measure side by side, so that each host has other partners each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay {

inline constexpr std::size_t min_grouped_hosts = 6;  // three groups of two: most are usual if one is slow

inline constexpr int groupings_in_all = 6;

using Grouping = std::vector<std::vector<std::size_t>>;  // the hosts of each group

// groupings_in_all groupings, as many of each size: groups of 2, 4 and 8 hosts, each size of which there are three
// groups at least. Every grouping shuffles all hosts (Rng, purpose "groups"); those that are left over wait. Empty for
// fewer than min_grouped_hosts.
std::vector<Grouping> random_groupings(std::size_t hosts, std::uint64_t seed);

}  // namespace assay
