// What is to be planned: the step, the method of training, and how ranks divide it.
#pragma once

#include "workloads/parallel/formulas.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace assay::planning {

inline double real(std::int64_t count) { return static_cast<double>(count); }

enum class Precision { f32, bf16, fp16 };
constexpr auto words(Precision) { return std::to_array<std::string_view>({"f32", "bf16", "fp16"}); }

using Recompute = parallel::Recompute;

// LoRA (Hu et al. 2021, arXiv 2106.09685) trains two thin matrices beside each target; QLoRA (Dettmers et al. 2023,
// arXiv 2305.14314) stores the frozen matrices in 4 bits.
enum class Method { full, lora, qlora };
constexpr auto words(Method) { return std::to_array<std::string_view>({"full", "lora", "qlora"}); }
enum class Targets { attention, mlp, all };
constexpr auto words(Targets) { return std::to_array<std::string_view>({"attention", "mlp", "all"}); }

// adamw_8bit: moments in 8 bits, blocks of 256 share an f32 (Dettmers et al. 2021, arXiv 2110.02861). adafactor: sums
// of rows and columns (Shazeer and Stern 2018, arXiv 1804.04235), without momentum. sgd has one momentum.
enum class Optimizer { adamw, sgd, adafactor, adamw_8bit };
constexpr auto words(Optimizer) { return std::to_array<std::string_view>({"adamw", "sgd", "adafactor", "adamw_8bit"}); }

// What lies in the host's memory: masters and moments, where the host also updates them; or the weights and gradients
// too.
enum class Offload { none, optimizer, weights };
constexpr auto words(Offload) { return std::to_array<std::string_view>({"none", "optimizer", "weights"}); }

// Whose step it is: Assay's own, or PyTorch's eager one.
enum class Engine { assay, torch };
constexpr auto words(Engine) { return std::to_array<std::string_view>({"assay", "torch"}); }

struct Layout {
  std::int64_t dp = 1;      // ranks that share the data
  std::int64_t tp = 1;      // ranks that share each layer
  bool sp = false;          // they also divide the sequence where layers are not divided
  std::int64_t pp = 1;      // ranks that share the layers
  std::int64_t chunks = 1;  // pieces of each of their stages: above 1, the interleaved schedule
  std::int64_t ep = 1;      // of the dp x cp ranks, those that share the experts
  std::int64_t cp = 1;      // ranks that share each sequence
  int zero = 0;             // as parallel::Layout

  std::int64_t ranks() const { return dp * tp * pp * cp; }
  // Ranks with the same weights, between which ZeRO divides.
  std::int64_t copies() const { return dp * cp; }

  static void members(auto& self, auto& io) {
    io("dp", self.dp), io("tp", self.tp), io("sp", self.sp), io("pp", self.pp), io("chunks", self.chunks);
    io("ep", self.ep), io("cp", self.cp), io("zero", self.zero);
  }
};

struct Step {
  std::int64_t micro_batch = 1;
  std::int64_t seq = 0;  // tokens, or patches of an image
  std::int64_t accumulate = 1;
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
  Method method = Method::full;
  std::int64_t lora_rank = 16;
  Targets lora_targets = Targets::all;
  Optimizer optimizer = Optimizer::adamw;
  Offload offload = Offload::none;

  // Of activations and products.
  double element_bytes() const { return precision == Precision::f32 ? 4 : 2; }
};

}  // namespace assay::planning
