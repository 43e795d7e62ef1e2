// Products of bf16 by the processor's tile instructions, with both operands packed by our own kernels: b in advance, as
// oneDNN's panels of 48 columns, or in each call if it is an activation; a in each call.
#include "workloads/ops/cpu/cpu_ops.h"
#include "workloads/ops/cpu/kernels/tile_kernels.h"
#include "workloads/ops/cpu/parallel.h"
#include "workloads/ops/cpu/product_sums.h"
#include "workloads/ops/cpu/special_kernels.h"
#include "workloads/ops/cpu/weight_pack.h"
#include "workloads/ops/round_up.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace assay::ops {

namespace {

constexpr std::int64_t height = TileKernels::height;
constexpr std::int64_t width = TileKernels::width;
constexpr std::int64_t depth = TileKernels::depth;
constexpr std::int64_t packed_a_bytes = 768 << 10;  // of the L2 cache, 2 MiB on processors with AMX
constexpr std::int64_t max_block_rows = 384;
constexpr std::int64_t max_whole_k = 4096;  // a longer k is multiplied in chunks, whose sums are kept
constexpr std::int64_t chunk_of_k = 2048;
constexpr std::int64_t min_streamed_bytes = 4 << 20;  // of out: more than an L2 cache, so that it would leave it anyway

TileProduct product_of(const MatmulDesc& d) {
  TileProduct p{.m = d.m, .n = d.n, .k = d.k, .padded_k = round_up(d.k, depth), .transpose_a = d.transpose_a};
  p.chunk = p.padded_k <= max_whole_k ? p.padded_k : chunk_of_k;
  p.block_rows = std::clamp(packed_a_bytes / (2 * p.chunk) / height * height, 2 * height, max_block_rows);
  p.out_is_f32 = d.out == DType::f32;
  p.bias_is_f32 = d.bias_type == DType::f32;
  p.accumulate = d.accumulate;
  p.stream = p.out_is_f32 && !d.accumulate && d.n % 16 == 0 && d.m * d.n * 4 >= min_streamed_bytes;
  p.gelu = gelu_kernel(d);
  p.gelu_gradient = gelu_gradient_kernel(d);
  return p;
}

// How the threads share out: the largest part is as small as possible, then the operands that each reads.
struct Grid {
  int rows = 1, columns = 1;
  int parts() const { return rows * columns; }
};
Grid grid_of(std::int64_t row_groups, std::int64_t panels) {
  Grid best;
  auto least = std::tuple(std::numeric_limits<std::int64_t>::max(), std::int64_t{0});
  const int threads = omp_get_max_threads();
  for (int rows = 1; rows <= threads; ++rows) {
    const int columns = threads / rows;
    const std::int64_t high = round_up(row_groups, rows) / rows, wide = round_up(panels, columns) / columns;
    if (const auto cost = std::tuple(high * wide, high + wide); cost < least) least = cost, best = {rows, columns};
  }
  return best;
}

class TileMatmul final : public Matmul {
 public:
  TileMatmul(const MatmulDesc& d, const TileKernels& kernels)
      : kernels_(kernels),
        product_(product_of(d)),
        panels_(round_up(d.n, width) / width),
        grid_(grid_of(round_up(d.m, height) / height, panels_)) {
    const std::int64_t wide = round_up(panels_, grid_.columns) / grid_.columns;
    const std::int64_t blocks = product_.chunk < product_.padded_k ? wide * product_.block_rows / height : 2;
    packed_a_ = static_cast<std::size_t>(product_.block_rows * product_.chunk) * 2;
    scratch_ = packed_a_ + static_cast<std::size_t>(blocks * TileKernels::block) * sizeof(float);
    panels_bytes_ = static_cast<std::size_t>(product_.padded_k * panels_ * width) * 2;
    if (d.row_sums) row_sums_.emplace(d);
    with_bias_ = d.bias;
    if (d.form != WeightForm::tiles) return;
    using dnnl::memory;
    const memory::dims strides = d.transpose_b ? memory::dims{1, d.k} : memory::dims{d.n, 1};
    const memory::desc from({d.k, d.n}, dnnl_type(d.pack_from), strides);
    pack_.emplace(from, memory::desc({d.k, d.n}, memory::data_type::bf16, memory::format_tag::BA16a48b2a));
  }

  std::string implementation() const override { return "assay:amx"; }
  std::string isa() const override { return "amx"; }
  std::size_t packed_bytes() const override { return pack_ ? panels_bytes_ : 0; }
  void pack(Stream&, const void* b, void* packed) override { pack_->run(b, packed); }
  std::size_t workspace_bytes() const override {
    return scratch_ * static_cast<std::size_t>(grid_.parts()) + (pack_ ? 0 : panels_bytes_);
  }

  void run(Stream&, const MatmulArgs& args) override {
    TileProduct p = product_;
    char* scratch = static_cast<char*>(args.workspace);
    p.a = args.a;
    p.panels = args.b;
    p.bias = with_bias_ ? args.bias : nullptr;
    p.out = args.out;
    p.aux = args.aux;
    p.stream = p.stream && reinterpret_cast<std::uintptr_t>(args.out) % 64 == 0;
    if (!pack_) {
      for_ranges(p.padded_k, depth, grid_.parts(),
                 [&](std::int64_t begin, std::int64_t end) { kernels_.pack(p, args.b, scratch, begin, end); });
      p.panels = scratch;
      scratch += panels_bytes_;
    }
    for_parts(grid_.parts(), [&](int index) {
      const Part rows = part_of(p.m, height, index / grid_.columns, grid_.rows);
      const Part panels = part_of(panels_, 1, index % grid_.columns, grid_.columns);
      char* own = scratch + static_cast<std::size_t>(index) * scratch_;
      if (rows.begin < rows.end && panels.begin < panels.end)
        kernels_.multiply(p, rows.begin, rows.end, panels.begin, panels.end, own,
                          reinterpret_cast<float*>(own + packed_a_));
    });
    if (row_sums_) row_sums_->run(args.a, static_cast<float*>(args.row_sums));
  }

 private:
  const TileKernels& kernels_;
  TileProduct product_;  // without operands
  std::int64_t panels_;
  Grid grid_;
  bool with_bias_ = false;
  std::size_t panels_bytes_ = 0;
  std::size_t packed_a_ = 0, scratch_ = 0;  // bytes of each thread's workspace
  std::optional<WeightPack> pack_;          // null: b is packed in each call
  std::optional<RowSums> row_sums_;
};

}  // namespace

Made<Matmul> make_tile_matmul(const MatmulDesc& d) {
  if (d.a != DType::bf16 || d.b != DType::bf16) return Made<Matmul>::no("tiles multiply bf16 only");
  const TileKernels* kernels = tile_kernels();
  if (!kernels) return Made<Matmul>::no("this processor has no tiles of bf16");
  if (d.form != WeightForm::tiles && d.transpose_b)
    return Made<Matmul>::no("tiles take b transposed only if it is packed in advance");
  return std::unique_ptr<Matmul>(std::make_unique<TileMatmul>(d, *kernels));
}

}  // namespace assay::ops
