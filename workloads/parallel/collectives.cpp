#include "workloads/parallel/collectives.h"

#include <algorithm>
#include <tuple>

namespace assay::parallel {

Moved moved_by(std::span<const Collective> collectives) {
  Moved moved;
  for (const Collective& calls : collectives) {
    const auto bytes = static_cast<std::uint64_t>(calls.count * calls.bytes());
    if (calls.kind == CollectiveKind::all_gather)
      moved.weights += bytes;
    else
      moved.gradients += bytes * (calls.kind == CollectiveKind::all_reduce ? 2 : 1);
  }
  return moved;
}

std::vector<Collective> grouped(std::vector<Collective> collectives) {
  const auto order = [](const Collective& one) { return std::tuple(one.kind, one.dtype, one.elements); };
  std::ranges::sort(collectives, [&](const Collective& a, const Collective& b) { return order(a) < order(b); });
  std::vector<Collective> groups;
  for (std::size_t first = 0; first < collectives.size();) {
    Collective group = collectives[first];
    std::int64_t sum = 0, calls = 0;
    for (; first < collectives.size(); ++first) {
      const Collective& one = collectives[first];
      if (one.kind != group.kind || one.dtype != group.dtype || 10 * one.elements > 11 * group.elements) break;
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
