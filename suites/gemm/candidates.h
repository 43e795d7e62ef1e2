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

// Bytes from one of several equal matrices to the next, so that each is aligned for vector loads.
constexpr std::size_t stride_of(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// Arrays of `slots` equal matrices.
struct Rotated {
  Buffer buffer;
  std::size_t bytes = 0;  // size of a single matrix

  Rotated() = default;
  Rotated(Device& device, std::size_t size, int slots)
      : buffer(device.allocate(stride_of(size) * static_cast<std::size_t>(slots))), bytes(size) {}
  void* at(int slot) const { return buffer.as<char>() + stride_of(bytes) * static_cast<std::size_t>(slot); }
  MemoryRange range(int slot) const { return memory_range(at(slot), bytes); }
};

struct Candidate {
  ops::WeightForm form;
  std::unique_ptr<ops::Matmul> op;
  Rotated weights;          // packed; empty if b is used as stored
  double pack_seconds = 0;  // per matrix
  double seconds = 0;       // median of the search samples; 0: not tried

  bool packs() const { return op->packed_bytes() > 0; }
};

struct Offer {
  std::vector<Candidate> candidates;  // of every form that the device supports
  std::vector<std::string> refused;   // the others: "packed: why not"
};

Offer candidates_for(ops::Backend& backend, const Shape& shape);

// How a candidate is tried.
struct Trial {
  std::function<void(Candidate&)> prepare = {};                    // once, before its first product
  std::function<void(const Candidate&, int repetition)> run = {};  // enqueues one product
  // Evicts what the next `repetitions` products use, before each sample; null: they are cold or hot without.
  std::function<void(const Candidate&, int repetitions)> evict = {};
  int max_repetitions = 1'000'000;  // per sample
};

// Times the candidates in turn, so that drift affects all alike, for up to `budget_seconds`, untimed work included.
// Their first products come in the order in which choose() prefers them. Candidates for which no time is left are not
// tried, but the first always is. Sets `seconds`.
void time_candidates(std::span<Candidate> candidates, Device& device, Stream& stream, const Trial& trial,
                     double budget_seconds);

// The index of the fastest candidate that was tried. Among candidates within 1 % of it, the first of packed, inner
// product, tiles, plain, so that noise does not decide.
std::size_t choose(std::span<const Candidate> candidates);

}  // namespace assay::gemm
