// Names of device kinds, and the way to a device: the CPU in the binary, others through their module.
#include "harness/device/device.h"

#include "harness/core/error.h"
#include "harness/core/module.h"
#include "harness/device/cpu/cpu_device.h"

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

std::unique_ptr<Device> make_device(DeviceKind kind, int local_rank) {
  if (kind == DeviceKind::cpu) return cpu::make_cpu_device();
  static const Module module = Module::load("cuda");
  using Make = Device* (*)(int);
  std::unique_ptr<Device> device(module.function<Make>("assay_make_cuda_device")(local_rank));
  ASSAY_CHECK(device, "the cuda module made no device for local rank {}", local_rank);
  return device;
}

}  // namespace assay
