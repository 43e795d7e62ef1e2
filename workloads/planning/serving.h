// The memory of serving a language model: weights, the cache of keys and values, and what a pass works with.
#pragma once

#include "workloads/architecture/architecture.h"
#include "workloads/planning/device.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::planning {

// How weights are held. int4 has groups of 128 with a scale and a zero point (as AWQ and GPTQ files); nf4 double
// quantisation.
enum class WeightFormat { as_stored, f32, bf16, fp16, fp8, int8, int4, nf4 };
constexpr auto words(WeightFormat) {
  return std::to_array<std::string_view>({"as_stored", "f32", "bf16", "fp16", "fp8", "int8", "int4", "nf4"});
}
enum class CacheFormat { bf16, fp16, f32, fp8, int8 };
constexpr auto words(CacheFormat) { return std::to_array<std::string_view>({"bf16", "fp16", "f32", "fp8", "int8"}); }

struct Serving {
  std::int64_t context = 0;      // tokens of a sequence, prompt and answer
  std::int64_t concurrency = 1;  // sequences at once
  WeightFormat weights = WeightFormat::as_stored;
  CacheFormat cache = CacheFormat::bf16;
  std::int64_t tp = 1;
};

struct ServingMemory {
  double weights = 0, cache = 0, workspace = 0;

  double total() const { return weights + cache + workspace; }
};

// Why it cannot be served so, with the nearest that can.
std::optional<std::string> problem_of(const architecture::Architecture& model, const Serving& serving);
// Of each rank. Prompts are read in pieces of at most 2048 tokens.
ServingMemory memory_of(const architecture::Architecture& model, const Serving& serving);
// The most sequences at once that fit so many bytes; 0 if not one does.
std::int64_t max_sequences(const architecture::Architecture& model, Serving serving, double bytes);
// What would fit if this does not, each alone, as flags: fewer sequences, a smaller cache, smaller weights, more ranks.
std::vector<std::pair<std::string, Serving>> nearest_that_fit(const architecture::Architecture& model,
                                                              const Serving& serving, const Device& device);

}  // namespace assay::planning
