#include "workloads/nn/parameter_layout.h"

#include <algorithm>
#include <numeric>

namespace assay::nn {

ParameterLayout lay_out(std::span<const ParameterSpec> specs, std::span<const std::size_t> ready,
                        std::int64_t bucket_elements, std::span<const std::int64_t> room) {
  constexpr std::int64_t line = 16;  // 4-byte elements in a cache line
  ParameterLayout layout;
  layout.begin.resize(specs.size());
  std::vector<std::size_t> order(specs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ready[a] < ready[b]; });
  for (const bool decay : {true, false}) {
    Bucket bucket{layout.count, layout.count, 0};
    const auto close = [&] {
      bucket.end = layout.count;
      if (bucket.end > bucket.begin) layout.buckets.push_back(bucket);
      bucket = {layout.count, layout.count, 0};
    };
    for (const std::size_t index : order) {
      if (specs[index].decay != decay) continue;
      layout.begin[index] = layout.count;
      const std::int64_t elements = specs[index].count() + (room.empty() ? 0 : room[index]);
      layout.count += (elements + line - 1) / line * line;
      bucket.ready = std::max(bucket.ready, ready[index]);
      if (layout.count - bucket.begin >= bucket_elements) close();
    }
    close();
    if (decay) layout.decayed = layout.count;
  }
  std::stable_sort(layout.buckets.begin(), layout.buckets.end(),
                   [](const Bucket& a, const Bucket& b) { return a.ready < b.ready; });
  return layout;
}

}  // namespace assay::nn
