// Host-side all-gathers of one value per rank.
#pragma once

#include "harness/comm/communicator.h"

#include <type_traits>
#include <vector>

namespace assay {

// Every rank's value, in rank order. All ranks must call it.
template <typename T>
std::vector<T> gather(Communicator& comm, const T& own) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather_host(&own, all.data(), sizeof own);
  return all;
}

inline double sum_over_ranks(Communicator& comm, double own) {
  double sum = 0;
  for (const double value : gather(comm, own)) sum += value;
  return sum;
}

}  // namespace assay
