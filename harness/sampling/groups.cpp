#include "harness/sampling/groups.h"

#include "harness/core/rng.h"

#include <algorithm>
#include <numeric>

namespace assay {

std::vector<Grouping> random_groupings(std::size_t hosts, std::uint64_t seed) {
  constexpr std::size_t min_groups = 3, max_size = 8;
  std::vector<std::size_t> sizes;
  for (std::size_t size = 2; size <= max_size && min_groups * size <= hosts; size *= 2) sizes.push_back(size);
  std::vector<Grouping> all;
  const Rng rng(seed, "groups");
  for (std::size_t i = 0; i < groupings_in_all && !sizes.empty(); ++i) {
    std::vector<std::size_t> order(hosts);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t host) { return rng.u64(i * hosts + host); });
    const std::size_t size = sizes[i % sizes.size()];
    Grouping& grouping = all.emplace_back();
    for (auto at = order.begin(); grouping.size() < hosts / size; at += static_cast<std::ptrdiff_t>(size))
      grouping.emplace_back(at, at + static_cast<std::ptrdiff_t>(size));
  }
  return all;
}

}  // namespace assay
