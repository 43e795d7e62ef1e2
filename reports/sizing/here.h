// This machine as a hardware sheet, with the rates that runs measured on it: `assay size --hardware here`.
#pragma once

#include "harness/machine/hardware.h"
#include "harness/runs/run_set.h"
#include "reports/sizing/published.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report::sizing {

inline constexpr std::string_view here_name = "here";

// Describes this machine's GPUs, or its CPUs. Making it throws Error if the GPUs cannot be used.
struct ThisMachine {
  std::string device;  // "NVIDIA H200"
  std::uint64_t memory_bytes = 0;
  std::int64_t devices = 1;  // GPUs, or 1 for all CPUs
};
using LookAtMachine = std::function<ThisMachine(bool gpu)>;

struct Here {
  HardwareSheet sheet;                    // named here_name; matches the device of this machine only
  std::int64_t devices = 1;               // GPUs, or 1 for the CPUs
  std::optional<PublishedShare> reached;  // of the sheet's peak, by trainings; absent without any in this precision
  std::vector<std::string> remarks;       // on what is not known
};

// The device that this machine's records are of: its GPU if there are such, else its CPUs. The peak is the fastest
// product or `peak` case of `precision`, the bandwidth that of the fastest loop over memory. `images`: whether
// trainings of images or of tokens count. Throws Error (no_data) with the way out if the runs have no record of this
// machine or no rate in this precision.
Here measured_here(const RunSet& runs, const LookAtMachine& look, const std::string& precision, bool images);

// The sheet of the device of a record's ranks; null if there is none. That of this machine counts for what was measured
// on this machine, and on CPUs by one rank, as its memory and rates are those of all of them.
const HardwareSheet* sheet_of_record(const Record& record, std::span<const HardwareSheet> sheets);

}  // namespace assay::report::sizing
