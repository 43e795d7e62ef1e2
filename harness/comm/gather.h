// Host-side all-gathers of a few values per rank. Over GPUs max_of() is one, too, so several values go in one call.
#pragma once

#include "harness/comm/communicator.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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

// Replaces each value by the largest of all ranks; every rank gives equally many.
inline void max_over_ranks(Communicator& comm, std::span<double> values) {
  if (comm.size() == 1 || values.empty()) return;
  std::vector<double> all(values.size() * static_cast<std::size_t>(comm.size()));
  comm.all_gather_host(values.data(), all.data(), values.size_bytes());
  for (std::size_t i = 0; i < all.size(); ++i) values[i % values.size()] = std::max(values[i % values.size()], all[i]);
}

inline double sum_over_ranks(Communicator& comm, double own) {
  double sum = 0;
  for (const double value : gather(comm, own)) sum += value;
  return sum;
}

// Every rank's text, in rank order.
inline std::vector<std::string> gather_texts(Communicator& comm, std::string_view own) {
  const std::vector<std::uint64_t> lengths = gather(comm, std::uint64_t{own.size()});
  const std::size_t longest = *std::ranges::max_element(lengths);
  std::string padded(own), all(longest * lengths.size(), '\0');
  padded.resize(longest);
  if (longest > 0) comm.all_gather_host(padded.data(), all.data(), longest);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) texts.push_back(all.substr(rank * longest, lengths[rank]));
  return texts;
}

}  // namespace assay
