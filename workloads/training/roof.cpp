#include "workloads/training/roof.h"

#include "harness/device/cpu/cpuid.h"
#include "harness/machine/hardware.h"
#include "harness/machine/machine.h"

namespace assay::training {

namespace {

// The name of a training precision in the sheets and in `peak`.
std::string dtype_of(std::string_view precision) { return precision == "fp8" ? "fp8_e4m3" : std::string(precision); }

}  // namespace

std::optional<Roof> sheet_roof(const Context& context, std::string_view precision, int threads) {
  const bool cpu = context.device.kind() == DeviceKind::cpu;
  const HardwareSheet* sheet = find_hardware(shipped_hardware(), context.device.info().name);
  if (cpu && !sheet) sheet = find_hardware(shipped_hardware(), cpu::processor().brand);
  if (!sheet) return std::nullopt;
  const auto peak = sheet->peak.find(dtype_of(precision));
  if (peak == sheet->peak.end()) return std::nullopt;
  double devices = context.inputs.world.ranks;
  if (cpu) {
    const CpuPart machine = probe_cpu(Root());
    const bool whole = cpu::processor().hypervisor.empty() && machine.sockets > 0 &&
                       threads * context.inputs.world.ranks == machine.cores * context.inputs.world.nodes;
    if (!whole) return std::nullopt;
    devices = static_cast<double>(machine.sockets) * context.inputs.world.nodes;
  }
  const auto source = sheet->sources.find("peak");
  return Roof{peak->second * devices,
              fmt::format("{:.4g} x {:.4g} TFLOP/s of {} ({}), dense; {}", devices, peak->second / 1e12, sheet->name,
                          precision, source == sheet->sources.end() ? "" : source->second)};
}

std::optional<Roof> measured_roof(const Context& context, std::string_view precision, int threads) {
  const MeasuredPeak* peak =
      find_peak(context.inputs.peaks, dtype_of(precision), "", context.inputs.world.ranks, threads);
  if (!peak) return std::nullopt;
  return Roof{peak->rate * context.inputs.world.ranks,
              fmt::format("{} ({}), measured in this run", peak->key, peak->isa)};
}

}  // namespace assay::training
