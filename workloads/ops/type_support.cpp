#include "workloads/ops/type_support.h"

#include "workloads/ops/backend.h"

#include <fmt/format.h>

namespace assay::ops {

std::optional<std::string> why_no_arithmetic(Device& device, DType type) {
  MatmulDesc desc{.m = 64, .n = 64, .k = 64, .a = type, .b = type, .out = type};
  std::string_view name = name_of(type);
  switch (type) {
    case DType::bf16:
    case DType::fp16: break;
    case DType::tf32: desc.out = DType::f32; break;
    case DType::fp8_e4m3:
    case DType::fp8_e5m2:
      desc.b = DType::fp8_e4m3;
      desc.out = DType::bf16;
      name = "fp8";
      break;
    default: return std::nullopt;
  }
  if (backend_for(device)->make<Matmul>(desc)) return std::nullopt;
  if (device.kind() == DeviceKind::cpu)
    // Some CPUs have it, but oneDNN is not asked for it.
    return type == DType::fp16 ? "Assay has no fp16 arithmetic for CPUs"
                               : fmt::format("this CPU has no {} arithmetic", name);
  const int capability = device.info().compute_capability;
  return fmt::format("this GPU has no {} arithmetic (compute capability {}.{})", name, capability / 10,
                     capability % 10);
}

}  // namespace assay::ops
