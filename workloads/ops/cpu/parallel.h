// How an op shares its work among the threads of the process.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace assay::ops {

struct Part {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Part `index` of [0, count) cut into `parts` about equal ones at multiples of `granule`.
inline Part part_of(std::int64_t count, std::int64_t granule, int index, int parts) {
  const std::int64_t units = (count + granule - 1) / granule;
  const auto bound = [&](int i) { return std::min(count, units * i / parts * granule); };
  return {bound(index), bound(index + 1)};
}

// How many parts an op should cut `count` into, decided where it is made: one a thread, none smaller than `least`.
inline int parts_for(std::int64_t count, std::int64_t least) {
  const std::int64_t most = std::max<std::int64_t>(1, count / std::max<std::int64_t>(1, least));
  return static_cast<int>(std::min<std::int64_t>(omp_get_max_threads(), most));
}

// work(index) for each of `parts`. What a part computes does not depend on how many threads there are.
template <typename Work>
void for_parts(int parts, const Work& work) {
  if (parts == 1) return work(0);
#pragma omp parallel for schedule(static, 1)
  for (int i = 0; i < parts; ++i) work(i);
}

}  // namespace assay::ops
