// Softmax cross-entropy: threads share the rows; losses are added in row order, whichever thread computed them.
#include "workloads/ops/cpu/cpu_ops.h"
#include "workloads/ops/cpu/kernels/cross_entropy_kernels.h"

#include <omp.h>

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

  // One result per row, then one row of exponentials per thread if needed.
  std::size_t workspace_bytes() const override {
    return result_bytes() + static_cast<std::size_t>(threads_ * scratch_) * sizeof(float);
  }

  void run(Stream&, const Args& args) override {
    auto* results = static_cast<RowResult*>(args.workspace);
    const std::size_t bytes = size_of(d_.dtype);
    auto* scratch = reinterpret_cast<float*>(static_cast<char*>(args.workspace) + result_bytes());
#pragma omp parallel for schedule(static) num_threads(threads_)
    for (std::int64_t i = 0; i < d_.rows; ++i) {
      CrossEntropyRow row{.logits = static_cast<char*>(args.logits) + static_cast<std::size_t>(i * d_.stride) * bytes,
                          .classes = d_.classes,
                          .target = args.targets[i],
                          .smoothing = d_.smoothing,
                          .scale = d_.gradient ? args.scale : nullptr,
                          .scratch = scratch + omp_get_thread_num() * scratch_};
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
  std::size_t result_bytes() const { return (static_cast<std::size_t>(d_.rows) * sizeof(RowResult) + 63) / 64 * 64; }

  CrossEntropyDesc d_;
  int threads_ = omp_get_max_threads();
  std::int64_t scratch_ = d_.gradient && d_.dtype == DType::bf16 ? (d_.classes + 15) / 16 * 16 : 0;
  CrossEntropyKernels::Row kernel_;
};

}  // namespace

template <>
Made<CrossEntropy> make_cpu(const CrossEntropyDesc& desc) {
  return make_unless<CrossEntropy, CpuCrossEntropy>(type_problem("cross-entropy", {desc.dtype}), desc);
}

}  // namespace assay::ops
