// The roofs of a machine: those it measured, and those of its hardware sheet. Rates are per unit: a GPU, or the cores
// of a host that work together.
#pragma once

#include "harness/machine/hardware.h"
#include "harness/runs/groups.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay::report {

struct Roof {
  double value = 0;                    // FLOP/s or B/s of one unit
  std::optional<Interval> range = {};  // 95 % interval, if measured
  std::string source;                  // the case, or the sheet with its source
  const Entry* entry = nullptr;        // if measured
};

// The number of units in a record's figures, which count all ranks (`total`) or one rank: divide by it to get the
// figure of one unit. A GPU is a rank; the ranks of a CPU share their host.
double units_of(const Record& record, bool total);

// Whether a record's figures may be drawn: ok, comparable, not injected.
bool usable(const Record& record);

// The best `peak` case or GEMM of a dtype, whichever is faster.
std::optional<Roof> measured_compute(std::span<const Entry* const> entries, std::string_view device,
                                     std::string_view dtype);
// The best GEMM of a dtype.
std::optional<Roof> best_gemm(std::span<const Entry* const> entries, std::string_view device, std::string_view dtype);
// FLOP per byte of a product: 2mnk / (bytes of A, B and C, each moved once). Absent if its shape is unknown.
std::optional<double> gemm_intensity(const Record& record);
// Bytes of the largest arrays that this loop over memory was measured with; 0 if there are none.
double largest_stream(std::span<const Entry* const> entries, std::string_view device, const std::string& op);
// The fastest loop over memory, each at the largest size that it was measured with: no other moves bytes faster.
std::optional<Roof> measured_memory(std::span<const Entry* const> entries, std::string_view device);

// FLOP per byte of a training step: its model FLOPs over its planned bytes, each counted once. An upper bound of the
// true intensity. Absent if the record lacks one of them.
std::optional<double> training_intensity(const Record& record);

// The sheet whose patterns match the GPU that the run or its records name; for a CPU, only if the whole machine was
// used and is not virtual. Null otherwise.
const HardwareSheet* sheet_of(std::span<const HardwareSheet> sheets, const RunData& run, const Record& record);
std::optional<Roof> sheet_compute(const HardwareSheet* sheet, const RunData& run, std::string_view device,
                                  std::string_view dtype);
std::optional<Roof> sheet_memory(const HardwareSheet* sheet, const RunData& run, std::string_view device);
// The sheet's peak behind the MFU of a training record; absent if it has none.
std::optional<Roof> recorded_peak(const Record& record);

}  // namespace assay::report
