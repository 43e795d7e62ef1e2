// The roofs of a machine: what it measured itself, and what its sheet gives. Rates are of the unit that a roof is told
// for: a GPU, or the cores of a host that work together.
#pragma once

#include "harness/machine/hardware.h"
#include "reports/data/groups.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

struct Roof {
  double value = 0;                    // FLOP/s or B/s of one unit
  std::optional<Interval> range = {};  // 95 % interval, of a measured one
  std::string source;                  // the case, or the sheet with its source
  const Entry* entry = nullptr;        // of a measured one
};

// How many units a record's figures are the sum of, when its metric counts all ranks (`total`), else when it counts
// one: figures divided by this are of one unit. A GPU is a rank; the ranks of a CPU share their host.
double units_of(const Record& record, bool total);

// Records that figures may be drawn from: ok, comparable, not injected.
bool usable(const Record& record);

// The best `peak` case or GEMM of a dtype, whichever is faster.
std::optional<Roof> measured_compute(std::span<const Entry* const> entries, std::string_view device,
                                     std::string_view dtype);
// The best GEMM of a dtype.
std::optional<Roof> best_gemm(std::span<const Entry* const> entries, std::string_view device, std::string_view dtype);
// Bytes of the largest arrays that triad and copy were measured with; 0 when they were not.
double largest_stream(std::span<const Entry* const> entries, std::string_view device);
// The better of STREAM's triad and copy at the largest size measured.
std::optional<Roof> measured_memory(std::span<const Entry* const> entries, std::string_view device);

// Of the sheet whose patterns match the GPU that the run or its records name; of a CPU only where the whole machine was
// used and it is no virtual one. Nothing otherwise.
const HardwareSheet* sheet_of(std::span<const HardwareSheet> sheets, const RunData& run, const Record& record);
std::optional<Roof> sheet_compute(const HardwareSheet* sheet, const RunData& run, std::string_view device,
                                  std::string_view dtype);
std::optional<Roof> sheet_memory(const HardwareSheet* sheet, const RunData& run, std::string_view device);
// What a training record itself says of its sheet's peak (its MFU stands on it); nothing when it has none.
std::optional<Roof> recorded_peak(const Record& record);

}  // namespace assay::report
