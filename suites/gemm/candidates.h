// The forms of a product that a device offers, and the search for the fastest.
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
  Buffer weights;           // packed, `slots` matrices; empty where b is used as it lies
  std::size_t stride = 0;   // bytes from one matrix to the next
  double pack_seconds = 0;  // of one matrix, once
  double seconds = 0;       // median of its own search samples
};

struct Offer {
  std::vector<Candidate> candidates;  // plain, packed, inner product: those that the device has
  std::vector<std::string> refused;   // "packed: why not", of the others
};

Offer candidates_for(ops::Backend& backend, const Shape& shape);

// Times the candidates in turn, so that drift hits all alike: at least once each, else for `budget` seconds.
// run(candidate, repetition) enqueues one product; `cold` flushes the cache before each sample. Sets `seconds`.
void time_candidates(std::span<Candidate> candidates, Device& device, Stream& stream, bool cold, double budget_seconds,
                     const std::function<void(Candidate&, int)>& run);

// The index of the fastest. Of those within 1 % of it the first of packed, inner product, plain, so that noise does
// not make two runs differ in form.
std::size_t choose(std::span<const Candidate> candidates);

}  // namespace assay::gemm
