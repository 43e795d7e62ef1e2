// Softmax cross-entropy: rows shared among threads; their losses are added in the rows' order, whoever computed them.
#include "workloads/ops/cpu/kernels/cross_entropy_kernels.h"
#include "workloads/ops/cpu/language_ops.h"
#include "workloads/ops/cpu/parallel.h"
#include "workloads/ops/cpu/vector_op.h"

#include <cstring>

namespace assay::ops {

namespace {

struct RowResult {
  double loss;
  bool valid, correct;
};

class CpuCrossEntropy final : public VectorOp<CrossEntropy> {
 public:
  CpuCrossEntropy(const CrossEntropyDesc& desc)
      : d_(desc),
        kernel_(desc.dtype == DType::f32 ? cpu::kernels<CrossEntropyKernels>().f32
                                         : cpu::kernels<CrossEntropyKernels>().bf16) {}

  std::size_t workspace_bytes() const override { return static_cast<std::size_t>(d_.rows) * sizeof(RowResult); }

  void run(Stream&, const Args& args) override {
    auto* results = static_cast<RowResult*>(args.workspace);
    const std::size_t bytes = size_of(d_.dtype);
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < d_.rows; ++i) {
      CrossEntropyRow row{.logits = static_cast<char*>(args.logits) + static_cast<std::size_t>(i * d_.stride) * bytes,
                          .classes = d_.classes,
                          .target = args.targets[i],
                          .smoothing = d_.smoothing,
                          .scale = d_.gradient ? args.scale : nullptr};
      const bool valid = args.targets[i] != d_.ignored;
      if (valid)
        kernel_(row);
      else if (d_.gradient)
        std::memset(row.logits, 0, static_cast<std::size_t>(d_.classes) * bytes);
      results[i] = {row.loss, valid, row.correct};
    }
    for (std::int64_t i = 0; i < d_.rows; ++i) {
      args.sums->loss += results[i].loss;
      args.sums->valid += results[i].valid;
      args.sums->correct += results[i].correct;
      if (args.row_losses) static_cast<float*>(args.row_losses)[i] = static_cast<float>(results[i].loss);
    }
  }

 private:
  CrossEntropyDesc d_;
  CrossEntropyKernels::Row kernel_;
};

std::string problem(const CrossEntropyDesc& d) {
  if (auto unsound = problem_of(d)) return *unsound;
  return unless_f32_or_bf16("cross-entropy", {d.dtype});
}

}  // namespace

Made<CrossEntropy> make_cross_entropy(const CrossEntropyDesc& desc) {
  return make_unless<CrossEntropy, CpuCrossEntropy>(problem(desc), desc);
}

}  // namespace assay::ops
