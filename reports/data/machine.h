// What a run says of the machine it ran on; what is not said is empty or absent.
#pragma once

#include "harness/record/run_dir.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::report {

struct Machine {
  std::string name;  // "AMD Zen 4, 2 cores, 24 GiB, no GPU"
  std::string cpu;   // "AMD Zen 4"
  std::string gpu;   // of the first GPU: "NVIDIA H200"; empty where there is none
  int gpus = 0;
  std::optional<int> cores;        // usable ones
  std::string provider;            // "aws"; by the DMI files or --label provider=
  std::string instance_type;       // "p5.48xlarge"; by the DMI files or --label instance_type=
  std::string region;              // --label region=
  std::vector<std::string> hosts;  // sorted, each once; from the records' ranks where run.json does not tell
};

Machine machine_of(const RunData& run);

// Members of a run.json that anyone may have written, by JSON pointer: null, empty or absent where there is none of
// that type.
const Json& member(const Json& json, const char* pointer);
std::string text_member(const Json& json, const char* pointer);
std::optional<double> number_member(const Json& json, const char* pointer);

}  // namespace assay::report
