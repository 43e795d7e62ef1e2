// Casts and sums of flat arrays.
#include "workloads/ops/cpu/kernels/flat_kernels.h"
#include "workloads/ops/cpu/parallel.h"
#include "workloads/ops/cpu/vector_op.h"
#include "workloads/ops/cpu/vector_ops.h"

namespace assay::ops {

namespace {

constexpr std::int64_t least_elements = 16384;  // of a thread's share

class CpuElementwise final : public VectorOp<Elementwise> {
 public:
  CpuElementwise(const ElementwiseDesc& desc)
      : d_(desc),
        parts_(parts_for(desc.count, least_elements)),
        kernel_(cpu::kernels<FlatKernels>().elementwise[desc.in == DType::bf16][desc.out == DType::bf16]) {}

  void run(Stream&, const Args& args) override {
    const void* b = d_.kind == ElementwiseKind::add ? args.b : nullptr;
    for_parts(parts_, [&](int index) {
      const Part mine = part_of(d_.count, 64, index, parts_);
      kernel_(args.a, b, args.out, mine.begin, mine.end);
    });
  }

 private:
  ElementwiseDesc d_;
  int parts_;
  FlatKernels::Elementwise kernel_;
};

}  // namespace

Made<Elementwise> make_elementwise(const ElementwiseDesc& desc) {
  return make_unless<Elementwise, CpuElementwise>(unless_f32_or_bf16("elementwise", {desc.in, desc.out}), desc);
}

}  // namespace assay::ops
