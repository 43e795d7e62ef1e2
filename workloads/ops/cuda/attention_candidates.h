// Candidates for attention by cuDNN: the plans that its heuristics offer for a descriptor.
#pragma once

#include "workloads/ops/attention.h"
#include "workloads/ops/cuda/cudnn/graphs.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace assay::ops {

// Why cuDNN cannot be asked at all; empty if it can.
std::string cudnn_refusal(const AttentionDesc& desc);

// Whether the tail of the last tile of keys must be masked by lengths.
bool has_masked_tail(const AttentionDesc& desc, bool backward);

cudnn::AttentionGraph attention_graph_of(const AttentionDesc& desc, bool backward);

// A plan and how many sequences it processes at a time, a divisor of the batch.
struct AttentionCandidate {
  std::int64_t slice = 1;
  bool repeats = true;  // its bits
  std::shared_ptr<cudnn::Plan> plan;
  bool tried = true;  // false: the first; no memory to try others

  static std::string prefix(std::int64_t slice, bool repeats) {
    return fmt::format("{} sequences, {} order: ", slice, repeats ? "fixed" : "any");
  }
  std::string name() const { return tried ? prefix(slice, repeats) + plan->name() : std::string(); }
};

// The best guesses of cuDNN's heuristics: forward; backward with sums in a fixed order and, if keys span more than one
// tile so that order matters, in any order, which saves memory traffic that grows with the square of the sequence. With
// a name, only the candidate of this name is built. `why_none` becomes the first reason if it is empty.
std::vector<AttentionCandidate> attention_candidates(const AttentionDesc& desc, bool backward, std::string& why_none,
                                                     const std::string& name = {});

}  // namespace assay::ops
