#include "workloads/ops/cuda/known_choices.h"

#include "harness/core/version.h"
#include "workloads/ops/cuda/blaslt.h"
#include "workloads/ops/cuda/cudnn/plan.h"

#include <fmt/format.h>

#include <cstdlib>

namespace assay::ops {

AlgorithmCache& algorithms_of(const Device& device, const std::string& libraries) {
  static std::mutex mutex;
  static auto& caches = *new std::map<std::string, std::unique_ptr<AlgorithmCache>>;
  const std::string owner = fmt::format("{}, {}, {}", libraries, device.info().software, device.info().name);
  const std::lock_guard lock(mutex);
  std::unique_ptr<AlgorithmCache>& cache = caches[owner];
  if (!cache) {
    const char* folder = std::getenv("ASSAY_CACHE");
    // The choices of other processes are by time.
    cache = std::make_unique<AlgorithmCache>(folder && !by_heuristics() ? folder : "", owner);
  }
  return *cache;
}

AlgorithmCache& choices_of(const Device& device) {
  static const auto& libraries =
      *new std::string(fmt::format("{}, {}, Assay {}", cudnn::version(), blaslt_version_text(), build_info().version));
  return algorithms_of(device, libraries);
}

}  // namespace assay::ops
