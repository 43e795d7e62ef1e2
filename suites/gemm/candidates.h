// The forms of a product that a device supports, and the search for the fastest.
#pragma once

#include "harness/device/device.h"
#include "suites/gemm/shape.h"
#include "workloads/ops/backend.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay::gemm {

struct Candidate {
  ops::WeightForm form;
  std::unique_ptr<ops::Matmul> op;
  Buffer weights;           // packed, `slots` matrices; empty if b is used as stored
  std::size_t stride = 0;   // bytes from one matrix to the next
  double pack_seconds = 0;  // per matrix
  double seconds = 0;       // median of the search samples
};

struct Offer {
  std::vector<Candidate> candidates;  // of plain, packed and inner product
  std::vector<std::string> refused;   // the others: "packed: why not"
};

Offer candidates_for(ops::Backend& backend, const Shape& shape);

// Times the candidates in turn, so that drift affects all alike: at least once each, then for up to `budget` seconds.
// run(candidate, repetition) enqueues one product; `cold` flushes the cache before each sample. Sets `seconds`.
void time_candidates(std::span<Candidate> candidates, Device& device, Stream& stream, bool cold, double budget_seconds,
                     const std::function<void(Candidate&, int)>& run);

// The index of the fastest. Among those within 1 % of it, the first of packed, inner product, plain, so that noise does
// not decide.
std::size_t choose(std::span<const Candidate> candidates);

}  // namespace assay::gemm
