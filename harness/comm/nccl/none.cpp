// The entry of a CUDA module built without NCCL: reports just that.
#include "harness/comm/nccl_entry.h"
#include "harness/core/error.h"

extern "C" assay::Communicator* assay_nccl_communicator(const assay::NcclWorld& world, const assay::ShareId&) {
  throw assay::Error(
      fmt::format("{} ranks on GPUs need NCCL, which this build of libassay-cuda.so lacks: install libnccl-dev (or the "
                  "wheel nvidia-nccl-cu13) and build again with -DASSAY_NCCL=ON",
                  world.size));
}
