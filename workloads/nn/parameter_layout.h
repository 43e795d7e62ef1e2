// Where each parameter lies in the flat buffers of masters, gradients and moments, and the buckets in which gradients
// are reduced.
#pragma once

#include "workloads/nn/model.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::nn {

// Elements [begin, end) of the gradients, complete after the instruction before `ready` of the last micro-batch.
struct Bucket {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t ready = 0;
};

struct ParameterLayout {
  std::vector<std::int64_t> begin;  // of each parameter, in elements; gaps between parameters hold zeros
  std::int64_t decayed = 0;         // elements [0, decayed) take part in weight decay, the others do not
  std::int64_t count = 0;           // of all elements
  std::vector<Bucket> buckets;      // in the order in which they are ready
};

// `ready` of each parameter: one beyond the last instruction that adds to its gradient. Within each half of the buffer
// parameters lie in that order, so that buckets are slices; each starts on a cache line. A bucket holds at least
// `bucket_elements` where that many are left. `room`, of each parameter or empty: elements of the gap behind it at
// least.
ParameterLayout lay_out(std::span<const ParameterSpec> specs, std::span<const std::size_t> ready,
                        std::int64_t bucket_elements, std::span<const std::int64_t> room = {});

}  // namespace assay::nn
