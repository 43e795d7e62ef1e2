// Names of device kinds, and making a device: the CPU is in the binary, others come from their module.
#include "harness/device/device.h"

#include "harness/core/error.h"
#include "harness/core/module.h"
#include "harness/device/cpu/cpu_device.h"
#include "harness/process/ask.h"

#include <cstdlib>
#include <exception>

namespace assay {

std::string_view name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu: return "cpu";
    case DeviceKind::cuda: return "cuda";
  }
  return "unknown";
}

std::optional<DeviceKind> device_kind_from(std::string_view name) {
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda})
    if (name == name_of(kind)) return kind;
  return std::nullopt;
}

std::string_view l2_level(const DeviceInfo& gpu, double bytes) {
  const auto l2 = static_cast<double>(gpu.last_level_cache_bytes);
  return bytes <= l2 / 2 ? "L2" : bytes <= l2 ? "L2, in part memory" : "";
}

std::unique_ptr<Device> make_device(DeviceKind kind, int local_rank) {
  if (kind == DeviceKind::cpu) return cpu::make_cpu_device();
  static const Module module = Module::load("cuda");
  using Make = Device* (*)(int);
  std::unique_ptr<Device> device(module.function<Make>("assay_make_cuda_device")(local_rank));
  ASSAY_CHECK(device, "the cuda module made no device for local rank {}", local_rank);
  return device;
}

CudaProbe probe_cuda() {
  constexpr double timeout = 120;  // a driver takes a few seconds to start eight GPUs
  const auto look = [] {
    CudaProbe found;
    try {
      found.gpus = Module::load("cuda").function<int (*)()>("assay_count_gpus")();
      make_device(DeviceKind::cuda, 0);
    } catch (const std::exception& error) {
      found.problem = error.what();
    }
    return fmt::format("{} {}", found.gpus, found.problem);
  };
  const ChildAnswer answer = ask_child(look, timeout);
  if (answer.late) return {0, fmt::format("the NVIDIA driver has not answered for {} s (does nvidia-smi?)", timeout)};
  if (!answer.text)
    return {0, fmt::format("the process that looks for GPUs crashed{}",
                           answer.signal != 0 ? fmt::format(" (signal {})", answer.signal) : ": " + answer.problem)};
  return {std::atoi(answer.text->c_str()), answer.text->substr(answer.text->find(' ') + 1)};
}

}  // namespace assay
