// Every two hosts measured against each other: which link, or which host, is the slow one.
#pragma once

#include "harness/plan/case.h"

#include <cstddef>
#include <memory>
#include <string>

namespace assay::collective {

inline constexpr const char* pairwise_op = "pairwise";

struct PairwiseParams {
  std::size_t bytes = 0;
  DType dtype = DType::f32;
  std::string batching;
  bool in_place = false;
  bool registered = false;
};

// One rank of each host (of a single host: every rank) sends to every other: all pairs in the rounds of a tournament,
// so that no link end is shared, one direction after the other. Messages up to 32 KiB go back and forth, and the time
// is that of one way (as the OSU benchmarks' latency, counted on who began); larger ones follow each other one way, and
// the time ends when the last has arrived. The record holds the matrix of every direction's median.
std::unique_ptr<Case> make_pairwise(const PairwiseParams& params);

}  // namespace assay::collective
