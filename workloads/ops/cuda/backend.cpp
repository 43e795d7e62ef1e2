// The backend of NVIDIA GPUs: maps each op to its factory.
#include "workloads/ops/backend.h"

#include "workloads/ops/cuda/blaslt.h"
#include "workloads/ops/cuda/cuda_ops.h"
#include "workloads/ops/cuda/cudnn/plan.h"

#include <fmt/format.h>

namespace assay::ops {

namespace {

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(Device& device)
      : Backend([&device]<typename Op>(const typename Op::Desc& desc) { return make_cuda<Op>(device, desc); }),
        device_(device) {}
  std::string name() const override { return "cuda"; }
  std::string libraries() const override {
    return fmt::format("{}; {}; {}", device_.info().software, blaslt_version_text(), cudnn::version());
  }

 private:
  Device& device_;
};

}  // namespace

}  // namespace assay::ops

extern "C" assay::ops::Backend* assay_make_cuda_backend(assay::Device* device) {
  return std::make_unique<assay::ops::CudaBackend>(*device).release();
}
