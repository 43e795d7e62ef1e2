#include "workloads/parallel/collectives.h"

#include <algorithm>
#include <tuple>

namespace assay::parallel {

std::vector<Collective> collectives_of(std::span<const std::int64_t> buckets, std::span<const std::int64_t> blocks,
                                       const StateTypes& types, const Layout& layout, std::int64_t accumulate) {
  std::vector<Collective> all;
  if (layout.zero == 0) {
    for (const std::int64_t elements : buckets)
      all.push_back({CollectiveKind::all_reduce, elements, types.gradient, 1});
    return all;
  }
  for (const std::int64_t block : blocks) {
    const std::int64_t elements = slice_of(block, layout.dp) * layout.dp;
    all.push_back(
        {CollectiveKind::reduce_scatter, elements, types.gradient, layout.zero > 1 ? accumulate : std::int64_t{1}});
    all.push_back(
        {CollectiveKind::all_gather, elements, types.parameter, layout.zero > 2 ? 2 * accumulate : std::int64_t{1}});
  }
  return all;
}

std::vector<Collective> grouped(std::vector<Collective> collectives) {
  const auto order = [](const Collective& one) { return std::tuple(one.kind, one.element_bytes, one.elements); };
  std::sort(collectives.begin(), collectives.end(),
            [&](const Collective& a, const Collective& b) { return order(a) < order(b); });
  std::vector<Collective> groups;
  for (std::size_t first = 0; first < collectives.size();) {
    Collective group = collectives[first];
    std::int64_t sum = 0, calls = 0;
    for (; first < collectives.size(); ++first) {
      const Collective& one = collectives[first];
      if (one.kind != group.kind || one.element_bytes != group.element_bytes || 10 * one.elements > 11 * group.elements)
        break;
      sum += one.elements * one.count;
      calls += one.count;
    }
    group.elements = sum / calls;
    group.count = calls;
    groups.push_back(group);
  }
  return groups;
}

}  // namespace assay::parallel
