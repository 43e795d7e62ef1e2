// The backend of NVIDIA GPUs: which of its files makes which op.
#include "workloads/ops/backend.h"

#include <memory>

namespace assay::ops {

namespace {

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(Device& device) : device_(device) {}
  std::string name() const override { return "cuda"; }
  std::string libraries() const override { return device_.info().software; }

 private:
  Device& device_;
};

}  // namespace

}  // namespace assay::ops

extern "C" assay::ops::Backend* assay_make_cuda_backend(assay::Device* device) {
  return std::make_unique<assay::ops::CudaBackend>(*device).release();
}
