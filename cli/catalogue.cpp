// To add a family: one include and one line here, its library in CMakeLists.txt.
#include "cli/catalogue.h"

#include "suites/collective/collective.h"
#include "suites/dataloader/dataloader.h"
#include "suites/gemm/gemm.h"
#include "suites/launch/launch.h"
#include "suites/memory/memory.h"
#include "suites/peak/peak.h"
#include "suites/transfer/transfer.h"
#include "workloads/resnet/family.h"
#include "workloads/transformer/family.h"

namespace assay::cli {

std::span<const Family> catalogue() {
  static const std::vector<Family> families = {
      // clang-format off
      peak_family(),
      gemm_family(),
      memory_family(),
      transfer_family(),
      collective_family(),
      dataloader_family(),
      launch_family(),
      resnet_family(),
      transformer_family(),
      llama_family(),
      // clang-format on
  };
  return families;
}

}  // namespace assay::cli
