// What the targets of a command line mean.
#pragma once

#include "harness/plan/plan_file.h"

#include <filesystem>
#include <span>
#include <string>

namespace assay {

// A path is a file; a bare word is a plan of configs/plans, else a family, else a file in the current folder, else a
// model of configs/models. Throws UsageError with the nearest choice, or if the plan is for another kind of device.
PlanSource read_target(const std::string& target, const std::filesystem::path& configs,
                       std::span<const Family> families, DeviceKind device);

// Bytes of memory that a case's ranks need on one host.
// A world of a plan's case: on as many hosts as its ranks need, if hosts are known.
World world_of(int ranks, DeviceKind device, const PlanLimits& limits);
double memory_needed(const Estimate& estimate, int ranks, const PlanLimits& limits);

// Replaces an entry that trains a whole model by one of the family that adds up slices if the whole does not fit this
// machine's memory, or the GPU's, and the slices do: by its first case. Returns what was chosen and why, for people.
std::string choose_whole_or_slices(PlanEntry& entry, std::span<const Family> families, DeviceKind device,
                                   const PlanLimits& limits);

}  // namespace assay
