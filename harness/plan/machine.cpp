#include "harness/plan/machine.h"

#include "harness/core/error.h"
#include "harness/core/module.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/device/cpu/limits.h"

#include <sched.h>

#include <algorithm>
#include <fstream>

namespace assay {

namespace fs = std::filesystem;

PlanLimits machine_limits() {
  PlanLimits limits;
  limits.memory_bytes = cpu::memory_limits().usable();
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) limits.cpus = std::max(1, CPU_COUNT(&set));
  return limits;
}

std::vector<std::string> gpus_here(const fs::path& root) {
  const auto read = [](const fs::path& path) {
    std::ifstream file(path);
    std::string word;
    file >> word;
    return word;
  };
  std::vector<std::string> found;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "sys/bus/pci/devices", none))
    if (read(entry.path() / "vendor") == "0x10de" && read(entry.path() / "class").starts_with("0x03"))
      found.push_back(entry.path().filename().string());
  if (found.empty())
    for (const fs::directory_entry& entry : fs::directory_iterator(root / "dev", none)) {
      const std::string name = entry.path().filename().string();
      constexpr std::string_view driver = "nvidia";  // nvidiactl and nvidia-uvm are not GPUs
      if (name.starts_with(driver) && name.size() > driver.size() &&
          name.find_first_not_of("0123456789", driver.size()) == name.npos)
        found.push_back("/dev/" + name);
    }
  std::ranges::sort(found);
  return found;
}

DeviceKind choose_device(std::string_view word, const std::vector<std::string>& gpus, bool cuda_module) {
  static const std::vector<std::string> words = {"auto", "cpu", "cuda"};
  if (word == "cpu") return DeviceKind::cpu;
  if (word == "cuda") {
    if (!cuda_module)
      throw UsageError("--device cuda: this build has no CUDA module (libassay-cuda.so is not beside the binary)");
    return DeviceKind::cuda;
  }
  if (word != "auto")
    throw UsageError(fmt::format("--device {}: unknown device{}", in_quotes(word), suggestion(word, words)));
  if (gpus.empty()) return DeviceKind::cpu;
  if (cuda_module) return DeviceKind::cuda;
  throw Error(
      fmt::format("--device auto: this machine has a GPU ({}), but this build has no CUDA module; build it with "
                  "the CUDA toolkit, or use --device cpu",
                  gpus.front()));
}

DeviceKind choose_device(std::string_view word) {
  return choose_device(word, gpus_here(), !Module::find("cuda").empty());
}

int require_gpus(std::string_view word) {
  const CudaProbe found = probe_cuda();
  if (found.problem.empty()) return found.gpus;
  if (word == "cuda") throw UsageError(fmt::format("--device cuda: {}", found.problem));
  throw Error(
      fmt::format("--device {}: the GPU cannot be used: {}; --device cpu measures the CPU", word, found.problem));
}

}  // namespace assay
