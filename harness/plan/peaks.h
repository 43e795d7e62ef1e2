// Peaks that `peak` cases measured earlier in the same run: the roof that `of_peak` stands on where no sheet applies.
#pragma once

#include "harness/core/json_fwd.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay {

struct Record;

struct MeasuredPeak {
  std::string key;       // of the case that measured it
  std::string dtype;     // f32, int8, ... as in keys
  std::string isa;       // that ran: avx512, avx2, amx, ...
  bool fastest = false;  // of the instruction sets that the CPU has for the dtype (isa=auto)
  int ranks = 1;         // that ran at once
  int threads = 1;       // of one rank
  double rate = 0;       // FLOP/s of one rank
};

// What a finished record says: something for a `peak` case whose checks held, nothing for any other.
std::optional<MeasuredPeak> measured_peak(const Record& record);

// The roof of a dtype at these ranks and threads: the fastest instruction set's, else that of `isa` itself. Null when
// there is none. The last one measured counts.
const MeasuredPeak* find_peak(std::span<const MeasuredPeak> peaks, std::string_view dtype, std::string_view isa,
                              int ranks, int threads);

Json to_json(const MeasuredPeak& peak);
// Throws Error when a member is missing or has a wrong type.
MeasuredPeak peak_from_json(const Json& json);

}  // namespace assay
