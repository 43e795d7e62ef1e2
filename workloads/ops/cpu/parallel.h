// Splits an op's work among the threads of the process.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace assay::ops {

struct Part {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Part `index` of [0, count) split into `parts` of about equal size at multiples of `granule`.
inline Part part_of(std::int64_t count, std::int64_t granule, int index, int parts) {
  const std::int64_t units = (count + granule - 1) / granule;
  const auto bound = [&](int i) { return std::min(count, units * i / parts * granule); };
  return {bound(index), bound(index + 1)};
}

// How many parts an op should split `count` into, decided when it is made: one per thread, none smaller than
// `min_part`.
inline int parts_for(std::int64_t count, std::int64_t min_part) {
  const std::int64_t max_parts = std::max<std::int64_t>(1, count / std::max<std::int64_t>(1, min_part));
  return static_cast<int>(std::min<std::int64_t>(omp_get_max_threads(), max_parts));
}

// Calls work(index) for each of `parts`, all of them even if there are fewer threads when it runs.
template <typename Work>
void for_parts(int parts, const Work& work) {
  if (parts == 1) return work(0);
#pragma omp parallel for schedule(static, 1)
  for (int i = 0; i < parts; ++i) work(i);
}

// Calls work(begin, end) for each of `parts` of [0, count), split as by part_of().
template <typename Work>
void for_ranges(std::int64_t count, std::int64_t granule, int parts, const Work& work) {
  for_parts(parts, [&](int index) {
    const Part mine = part_of(count, granule, index, parts);
    work(mine.begin, mine.end);
  });
}

}  // namespace assay::ops
