// Finds out which layouts our own kernels can pack: oneDNN's panels of columns, BA..a..b of f32 and BA..a..b2a of bf16.
#include "workloads/ops/cpu/weight_pack.h"

#include "harness/device/cpu/kernels.h"

namespace assay::ops {

namespace {

using dnnl::memory;

// The panels of `desc`, a matrix (K, N); nothing if it has another layout.
std::optional<PackedPanels> panels_of(const memory::desc& desc) {
  const bool pairs = desc.get_data_type() == memory::data_type::bf16;
  if (desc.get_ndims() != 2 || desc.get_format_kind() != memory::format_kind::blocked) return std::nullopt;
  const memory::dims blocks = desc.get_inner_blks(), indices = desc.get_inner_idxs();
  const memory::dims expected = pairs ? memory::dims{0, 1, 0} : memory::dims{0, 1};
  if (desc.get_inner_nblks() != static_cast<int>(expected.size()) || indices != expected) return std::nullopt;
  if (pairs && blocks[2] != 2) return std::nullopt;
  const std::int64_t panel_rows = blocks[0] * (pairs ? 2 : 1);
  PackedPanels p;
  p.k = desc.get_dims()[0];
  p.n = desc.get_dims()[1];
  p.rows = desc.get_padded_dims()[0];
  p.width = blocks[1];
  if (p.width % PackKernels::granule != 0 || p.rows % panel_rows != 0) return std::nullopt;
  const memory::dims strides = desc.get_strides();
  // Contiguous panels, each with its rows in order, and nothing else (such as sums for int8).
  const std::int64_t columns = desc.get_padded_dims()[1];
  const std::size_t bytes = static_cast<std::size_t>(p.rows * columns) * (pairs ? 2 : 4);
  if (strides[0] != panel_rows * p.width || strides[1] != p.rows * p.width || desc.get_size() != bytes)
    return std::nullopt;
  return p;
}

bool is_f32(const memory::desc& desc) { return desc.get_data_type() == memory::data_type::f32; }

}  // namespace

WeightPack::WeightPack(const memory::desc& from, const memory::desc& to) {
  const bool pairs = to.get_data_type() == memory::data_type::bf16;
  if (is_f32(from) && (pairs || is_f32(to)))
    if (const auto panels = panels_of(to)) {
      const PackKernels& kernels = cpu::kernels<PackKernels>();
      const memory::dims strides = from.get_strides();
      panels_ = *panels;
      if (strides == memory::dims{1, panels_.k}) {
        steps_ = pairs ? kernels.across_bf16 : kernels.across_f32;
        count_ = to.get_padded_dims()[1] / PackKernels::granule;
      } else if (pairs && strides == memory::dims{panels_.n, 1}) {
        steps_ = kernels.along_bf16;
        count_ = (panels_.rows + PackKernels::tall - 1) / PackKernels::tall;
      }
    }
  if (!steps_) reorder_.emplace(from, to);
}

void WeightPack::run(const void* from, void* to) {
  if (reorder_) return reorder_->run(from, to);
  PackedPanels panels = panels_;
  panels.from = static_cast<const float*>(from);
  panels.to = to;
#pragma omp parallel for schedule(static)
  for (std::int64_t step = 0; step < count_; ++step) steps_(panels, step, step + 1);
}

}  // namespace assay::ops
