// What the command line must know of this machine before anything runs.
#pragma once

#include "harness/plan/plan.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cli {

// The machine's memory (as cgroups and rlimits leave it) and CPUs.
PlanLimits machine_limits();

// PCI addresses of NVIDIA display and 3D controllers, in order; where /sys shows none, as in a sandbox that has no PCI
// bus, the driver's device files ("/dev/nvidia0"). `root` is where /sys and /dev are found.
std::vector<std::string> gpus_here(const std::filesystem::path& root = "/");

// The device that `--device auto|cpu|cuda` means. auto: the GPU where this machine has one, else the CPU. Throws
// UsageError for another word, or `cuda` in a build without its module; Error (exit code 4) when auto finds a GPU that
// this build cannot use: it never falls back in silence.
DeviceKind choose_device(std::string_view word, const std::vector<std::string>& gpus, bool cuda_module);
DeviceKind choose_device(std::string_view word);

// How many GPUs there are to measure on, by asking the CUDA module, for a run that `--device word` chose them for.
// Throws UsageError where the GPU was asked for by name and cannot be used, Error (exit code 4) where `auto` found it.
int require_gpus(std::string_view word);

}  // namespace assay::cli
