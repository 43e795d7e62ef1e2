// What a plan needs to know about this machine before anything runs.
#pragma once

#include "harness/plan/plan.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The machine's memory (within cgroup and rlimit limits) and CPUs.
PlanLimits machine_limits();

// PCI addresses of NVIDIA display and 3D controllers, in order; if /sys lists none, as in a sandbox without a PCI bus,
// the driver's device files ("/dev/nvidia0"). `root` contains /sys and /dev.
std::vector<std::string> gpus_here(const std::filesystem::path& root = "/");

// The device that `--device auto|cpu|cuda` means. auto: the GPU if this machine has one, else the CPU. Throws
// UsageError for another word, or for `cuda` in a build without the module; Error (exit code 4) if auto finds a GPU
// that this build cannot use: it never falls back silently.
DeviceKind choose_device(std::string_view word, const std::vector<std::string>& gpus, bool cuda_module);
DeviceKind choose_device(std::string_view word);

// How many GPUs the CUDA module can use, for a run on the device of `--device word`. Throws UsageError if a GPU was
// requested by name and cannot be used, Error (exit code 4) if `auto` found it.
int require_gpus(std::string_view word);

}  // namespace assay
