// The loop that all vector kernels share. Included by files with different compiler flags: each defines `V` in an
// unnamed namespace, so that no two share an instance.
#pragma once

#include "suites/peak/kernels.h"

namespace assay::peak {

// V has: Register (operands), Sum, load(address), start(i) (every lane i), add(sum, x, y) = sum + x * y, store.
template <typename V, int accumulators>
inline void accumulate(const Operands& operands, std::int64_t pairs, void* sums) {
  const typename V::Register x = V::load(operands.x.data());
  const typename V::Register y0 = V::load(operands.y0.data());
  const typename V::Register y1 = V::load(operands.y1.data());
  typename V::Sum sum[accumulators];
#pragma GCC unroll 32
  for (int i = 0; i < accumulators; ++i) sum[i] = V::start(i);
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
#pragma GCC unroll 32
    for (int i = 0; i < accumulators; ++i) sum[i] = V::add(sum[i], x, y0);
#pragma GCC unroll 32
    for (int i = 0; i < accumulators; ++i) sum[i] = V::add(sum[i], x, y1);
  }
  char* to = static_cast<char*>(sums);
#pragma GCC unroll 32
  for (int i = 0; i < accumulators; ++i) V::store(to + static_cast<std::size_t>(i) * sizeof(typename V::Sum), sum[i]);
}

}  // namespace assay::peak
