// Data about parts (configs/normal): FLOP per cycle of cores, and the usual shares of what parts allow.
#pragma once

#include "harness/fitness/floors/selection.h"

#include <filesystem>
#include <string>
#include <vector>

namespace assay::report {

struct CorePeak {
  std::string isa;    // as the family `peak` names it
  std::string dtype;  // f32, bf16, ...
  double max = 0;     // FLOP per cycle of one core
  std::string source;
};

// A share of a bound, 0 to 1, that figures usually reach.
struct UsualShare : fitness::Selection {
  Interval share;
};

struct PartsData {
  std::vector<CorePeak> cores;
  std::vector<UsualShare> usual;  // the first that concerns a figure counts
};

// Throws UsageError that names each problem's place: no source, a share above 1, an unknown metric.
PartsData load_parts(const std::filesystem::path& file);
// Those shipped: configs/normal/parts.json.
const PartsData& shipped_parts();

}  // namespace assay::report
