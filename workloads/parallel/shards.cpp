#include "workloads/parallel/shards.h"

namespace assay::parallel {

namespace {

std::int64_t divided(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

}  // namespace

std::int64_t slice_of(std::int64_t elements, std::int64_t dp) {
  return divided(divided(elements, dp), slice_alignment) * slice_alignment;
}

}  // namespace assay::parallel
