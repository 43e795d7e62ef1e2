#include "harness/kineto/parts.h"

#include <algorithm>

namespace assay::kineto {

void unite(Ranges& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.start < b.start; });
  std::size_t kept = 0;
  for (const Range& range : ranges)
    if (kept > 0 && range.start <= ranges[kept - 1].end)
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    else
      ranges[kept++] = range;
  ranges.resize(kept);
}

std::vector<std::vector<std::int64_t>> divide(std::span<const Range> windows, std::span<const Ranges* const> layers) {
  std::vector<std::vector<std::int64_t>> times;
  std::vector<std::size_t> at(layers.size(), 0);  // the first range of each layer that has not ended
  for (const Range& window : windows) {
    std::vector<std::int64_t>& sums = times.emplace_back(layers.size(), 0);
    for (std::int64_t now = window.start; now < window.end;) {
      std::int64_t until = window.end;
      for (std::size_t i = 0; i < layers.size(); ++i) {
        const Ranges& layer = *layers[i];
        while (at[i] < layer.size() && layer[at[i]].end <= now) ++at[i];
        if (at[i] == layer.size()) continue;
        const Range& next = layer[at[i]];
        if (next.start <= now) {
          until = std::min(until, next.end);
          sums[i] += until - now;
          break;
        }
        until = std::min(until, next.start);
      }
      now = until;
    }
  }
  return times;
}

Ranges phases(const Ranges& parts, const Ranges& others) {
  Ranges found;
  auto other = others.begin();
  for (const Range& part : parts) {
    if (!found.empty()) {
      while (other != others.end() && other->start < found.back().end) ++other;
      if (other == others.end() || other->start >= part.start) {
        found.back().end = part.end;
        continue;
      }
    }
    found.push_back(part);
  }
  return found;
}

}  // namespace assay::kineto
