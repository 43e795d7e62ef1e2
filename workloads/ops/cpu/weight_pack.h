// Packs weights into the layout that a oneDNN primitive asked for.
#pragma once

#include "workloads/ops/cpu/dnnl_common.h"
#include "workloads/ops/cpu/kernels/pack_kernels.h"

#include <optional>

namespace assay::ops {

// Uses our own kernels if they support the layout (oneDNN 3.2 takes up to six times as long from f32 to bf16 panels),
// else a oneDNN reorder.
class WeightPack {
 public:
  // `from` is the caller's matrix; it and `to` have two dimensions.
  WeightPack(const dnnl::memory::desc& from, const dnnl::memory::desc& to);
  void run(const void* from, void* to);

 private:
  std::optional<DnnlReorder> reorder_;
  PackedPanels panels_;
  PackKernels::Steps steps_ = nullptr;
  std::int64_t count_ = 0;
};

}  // namespace assay::ops
