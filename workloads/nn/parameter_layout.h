// The positions of parameters in the flat buffers of masters, gradients and moments, and the buckets in which gradients
// are reduced.
#pragma once

#include "workloads/nn/model.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::nn {

// Gradient elements [begin, end), complete once `ready` instructions of the last micro-batch have run.
struct Bucket {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t ready = 0;
};

struct ParameterLayout {
  std::vector<std::int64_t> begin;  // of each parameter, in elements; gaps between parameters hold zeros
  std::int64_t decayed = 0;         // elements [0, decayed) are subject to weight decay, the others are not
  std::int64_t count = 0;           // elements in all
  std::vector<Bucket> buckets;      // in the order in which they become ready
};

// `ready`: for each parameter, one past the last instruction that adds to its gradient. Each half of the buffer holds
// parameters in that order, so that buckets are slices; each parameter starts on a cache line. A bucket holds at least
// `bucket_elements`, if that many are left. `room` (empty, or one per parameter): the minimum gap after the parameter.
ParameterLayout lay_out(std::span<const ParameterSpec> specs, std::span<const std::size_t> ready,
                        std::int64_t bucket_elements, std::span<const std::int64_t> room = {});

}  // namespace assay::nn
