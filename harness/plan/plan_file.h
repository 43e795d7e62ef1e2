// A plan as written, before its lists are expanded: entries checked against the schemas of their families.
#pragma once

#include "harness/plan/plan.h"
#include "harness/plan/values.h"

#include <string>
#include <utility>
#include <vector>

namespace assay {

// One entry of "cases", or one bare family.
struct PlanEntry {
  const Family* family = nullptr;
  std::string model;                                           // that was named as the target; empty: none was
  std::string source;                                          // file, or command-line word
  std::string pointer;                                         // into the file; empty for a bare family
  std::vector<std::pair<const ParamSpec*, ValueList>> values;  // every parameter, in the family's order
  std::vector<int> ranks;                                      // empty: not given
  std::uint64_t seed = 0;
  ProtocolOverrides protocol;
  double timeout_seconds = 0;
};

struct PlanSource {
  std::string name;
  std::map<std::string, std::string> labels;
  std::vector<PlanEntry> entries;
  std::optional<DeviceKind> device = {};  // the only kind that it is for; absent: any
};

inline constexpr int plan_schema = 1;
inline constexpr int max_ranks = 65536;

// Reads and checks a plan file; what it leaves out gets the device's defaults. Throws UsageError that lists all its
// errors.
PlanSource read_plan_file(const std::filesystem::path& path, std::span<const Family> families, DeviceKind device);
// A bare family: every parameter at its defaults on the device.
PlanSource bare_family(const Family& family, DeviceKind device);

std::vector<std::string> family_names(std::span<const Family> families);

// Parts that an expanded plan shares with a file.
ProtocolOverrides read_protocol(const Cursor& cursor);
std::uint64_t read_seed(const Cursor& cursor);

}  // namespace assay
