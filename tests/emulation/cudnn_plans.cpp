// Stand-in of cuDNN's graphs: convolutions by the oracle, on copies in f32, with cuDNN's quirks. It has no weight
// gradients in f32 from 16-bit images; rejects 16-bit tensors with an odd number of channels, so that callers pad;
// offers several plans for small graphs, so that callers must choose; and plans use all of their workspace.
#include "harness/device/cuda/check.h"
#include "tests/emulation/cudnn_tensors.h"
#include "tests/emulation/runtime.h"
#include "tests/oracle/oracle.h"
#include "workloads/ops/backend.h"
#include "workloads/ops/cuda/cudnn/graphs.h"
#include "workloads/ops/cuda/cudnn/plan.h"

#include <fmt/format.h>

#include <cstring>

namespace assay::ops::cudnn {

namespace {

class EmulatedConvolution final : public Plan {
 public:
  EmulatedConvolution(const ConvolutionGraph& graph, std::size_t workspace) : d_(graph), workspace_bytes_(workspace) {}

  std::string name() const override { return fmt::format("emulated convolution, {} B", workspace_bytes_); }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  void run(cudaStream_t stream, std::span<const Operand> operands, void* workspace) const override {
    void *x = nullptr, *w = nullptr, *y = nullptr;
    for (const Operand& operand : operands)
      (operand.id == convolution_x ? x : operand.id == convolution_w ? w : y) = operand.data;
    for (const void* data : {x, w, y}) check_tensor(data);
    ASSAY_CUDA(emulation::enqueue(stream, [=, this] { convolve(x, w, y, workspace); }));
  }

 private:
  std::size_t x_count() const { return static_cast<std::size_t>(d_.n * d_.h * d_.w * d_.c); }
  std::size_t w_count() const { return static_cast<std::size_t>(d_.k * d_.r * d_.s * d_.c / d_.groups); }
  std::size_t y_count() const { return static_cast<std::size_t>(d_.n * d_.p() * d_.q() * d_.k); }

  void convolve(void* x, void* w, void* y, void* workspace) const {
    static const std::shared_ptr<Backend> oracle = make_reference_backend();
    if (workspace_bytes_ > 0) std::memset(workspace, 0xff, workspace_bytes_);
    const ConvDesc desc{.n = d_.n,
                        .h = d_.h,
                        .w = d_.w,
                        .c = d_.c,
                        .k = d_.k,
                        .r = d_.r,
                        .s = d_.s,
                        .stride = d_.stride,
                        .padding = d_.padding,
                        .groups = d_.groups};
    NoStream stream;
    std::vector<float> out;
    switch (d_.pass) {
      case ConvolutionPass::forward: {
        const auto from = copy_of(x, d_.dtype, x_count()), weights = copy_of(w, d_.dtype, w_count());
        out.resize(y_count());
        oracle->make<ConvForward>(desc).take()->run(stream,
                                                    {.x = from.data(), .packed = weights.data(), .y = out.data()});
        return put(out, y, d_.dtype);
      }
      case ConvolutionPass::backward_data: {
        const auto dy = copy_of(y, d_.dtype, y_count()), weights = copy_of(w, d_.dtype, w_count());
        out.resize(x_count());
        oracle->make<ConvBackwardData>(desc).take()->run(stream,
                                                         {.dy = dy.data(), .packed = weights.data(), .dx = out.data()});
        return put(out, x, d_.dtype);
      }
      case ConvolutionPass::backward_weights: {
        const auto from = copy_of(x, d_.dtype, x_count()), dy = copy_of(y, d_.dtype, y_count());
        out.resize(w_count());
        oracle->make<ConvBackwardWeights>(desc).take()->run(stream,
                                                            {.x = from.data(), .dy = dy.data(), .dw = out.data()});
        return put(out, w, d_.gradient);
      }
    }
  }

  ConvolutionGraph d_;
  std::size_t workspace_bytes_;
};

}  // namespace

// With a script it is another library, with other choices.
std::string version() {
  const auto script = emulation::scripted("cudnn");
  return script ? fmt::format("emulated cuDNN ({})", *script) : "emulated cuDNN";
}

std::string device_description() {
  return R"json({"deviceName":"emulated GPU (not a measurement)","deviceVer":900})json";
}

Plans convolution_plans(const ConvolutionGraph& d, const Limits& limits) {
  if (size_of(d.dtype) == 2 && (d.c % 2 != 0 || d.k % 2 != 0))
    return {{}, fmt::format("{}: no engine for {} to {} channels of {}", version(), d.c, d.k, name_of(d.dtype))};
  if (size_of(d.weights()) != size_of(d.dtype))
    return {{}, fmt::format("{}: no engine from {} to {}", version(), name_of(d.dtype), name_of(d.weights()))};
  constexpr std::int64_t small = 256;  // pixels
  std::vector<std::shared_ptr<Plan>> plans = {std::make_shared<EmulatedConvolution>(d, 0)};
  if (d.n * d.h * d.w <= small) plans.push_back(std::make_shared<EmulatedConvolution>(d, 1000));
  return offered(std::move(plans), limits);
}

}  // namespace assay::ops::cudnn
