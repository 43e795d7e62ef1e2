// Pooling: threads share the rows of pixels.
#include "workloads/ops/cpu/cpu_ops.h"

#include "workloads/ops/cpu/kernels/pool_kernels.h"
#include "workloads/ops/cpu/parallel.h"

#include <algorithm>

namespace assay::ops {

namespace {

constexpr std::int64_t pool_min_elements = 8192;  // per thread: splitting less work costs more than it saves

const PoolKernels::Typed& pool_kernels_for(DType dtype) {
  const PoolKernels& kernels = cpu::kernels<PoolKernels>();
  return dtype == DType::f32 ? kernels.f32 : kernels.bf16;
}

class PoolRun {
 public:
  // `rows`: of the output.
  PoolRun(const PoolDesc& desc, PoolKernels::Run kernel, std::int64_t rows)
      : d_(desc),
        kernel_(kernel),
        rows_(rows),
        parts_(static_cast<int>(
            std::min<std::int64_t>(parts_for(desc.n * desc.h * desc.w * desc.c, pool_min_elements), rows))) {}

  void run(const void* from, void* to, const void* saved) const {
    const PoolRows rows{.desc = d_,
                        .p = d_.p(),
                        .q = d_.q(),
                        .from = from,
                        .to = to,
                        .saved = static_cast<unsigned char*>(const_cast<void*>(saved))};
    for_ranges(rows_, 1, parts_, [&](std::int64_t begin, std::int64_t end) { kernel_(rows, begin, end); });
  }

 private:
  PoolDesc d_;
  PoolKernels::Run kernel_;
  std::int64_t rows_;
  int parts_;
};

class CpuPoolForward final : public VectorOp<PoolForward> {
 public:
  explicit CpuPoolForward(const PoolDesc& d)
      : saved_bytes_(d.kind == PoolKind::maximum ? static_cast<std::size_t>(d.n * d.p() * d.q() * d.c) : 0),
        run_(d,
             d.kind == PoolKind::maximum ? pool_kernels_for(d.dtype).maximum_forward
                                         : pool_kernels_for(d.dtype).average_forward,
             d.n * d.p()) {}

  std::size_t saved_bytes() const override { return saved_bytes_; }
  void run(Stream&, const Args& args) override { run_.run(args.x, args.y, args.saved); }

 private:
  std::size_t saved_bytes_;
  PoolRun run_;
};

class CpuPoolBackward final : public VectorOp<PoolBackward> {
 public:
  explicit CpuPoolBackward(const PoolDesc& d)
      : run_(d,
             d.kind == PoolKind::maximum ? pool_kernels_for(d.dtype).maximum_backward
                                         : pool_kernels_for(d.dtype).average_backward,
             d.n * d.h) {}

  void run(Stream&, const Args& args) override { run_.run(args.dy, args.dx, args.saved); }

 private:
  PoolRun run_;
};

std::string problem(const PoolDesc& d) {
  if (d.kind == PoolKind::maximum && d.window_h * d.window_w > max_window)
    return fmt::format("the cpu backend's max pooling takes windows of up to {} pixels, not {} x {}", max_window,
                       d.window_h, d.window_w);
  return type_problem("pooling", {d.dtype});
}

}  // namespace

template <>
Made<PoolForward> make_cpu(const PoolDesc& desc) {
  return make_unless<PoolForward, CpuPoolForward>(problem(desc), desc);
}

template <>
Made<PoolBackward> make_cpu(const PoolDesc& desc) {
  return make_unless<PoolBackward, CpuPoolBackward>(problem(desc), desc);
}

}  // namespace assay::ops
