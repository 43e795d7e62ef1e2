// Rotary embedding: threads share the tokens.
#include "workloads/ops/cpu/cpu_ops.h"
#include "workloads/ops/cpu/kernels/rotary_kernels.h"
#include "workloads/ops/cpu/parallel.h"

namespace assay::ops {

namespace {

constexpr std::int64_t rotary_min_elements = 4096;  // per thread

class CpuRotary final : public VectorOp<Rotary> {
 public:
  CpuRotary(const RotaryDesc& desc)
      : d_(desc),
        parts_(parts_for(desc.batch * desc.seq * desc.heads * desc.head_dim, rotary_min_elements)),
        kernel_(desc.dtype == DType::f32 ? cpu::kernels<RotaryKernels>().f32 : cpu::kernels<RotaryKernels>().bf16) {}

  void run(Stream&, const Args& args) override {
    const auto token_bytes = static_cast<std::size_t>(d_.stride) * size_of(d_.dtype);
    const std::int64_t half = d_.head_dim / 2;
    for_parts(parts_, [&](int part) {
      const Part mine = part_of(d_.batch * d_.seq, 1, part, parts_);
      for (std::int64_t token = mine.begin; token < mine.end; ++token) {
        const std::int64_t at = token % d_.seq * half;
        kernel_(static_cast<char*>(args.x) + static_cast<std::size_t>(token) * token_bytes,
                static_cast<const float*>(args.cosine) + at, static_cast<const float*>(args.sine) + at, d_.heads, half,
                d_.inverse ? -1.0f : 1.0f);
      }
    });
  }

 private:
  RotaryDesc d_;
  int parts_;
  RotaryKernels::Token kernel_;
};

}  // namespace

template <>
Made<Rotary> make_cpu(const RotaryDesc& desc) {
  return make_unless<Rotary, CpuRotary>(type_problem("rotary embedding", {desc.dtype}), desc);
}

}  // namespace assay::ops
