// The machine of a run, as run.json describes it; facts that it lacks are empty or absent.
#pragma once

#include "harness/record/run_dir.h"

#include <optional>
#include <string>
#include <vector>

namespace assay {

struct RunMachine {
  std::string name;  // "AMD Zen 4, 2 cores, 24 GiB, no GPU"
  std::string cpu;   // "AMD Zen 4"
  std::string gpu;   // the first GPU: "NVIDIA H200"; empty if there is none
  int gpus = 0;
  std::optional<int> cores;        // usable
  std::string provider;            // "aws"; from DMI or --label provider=
  std::string instance_type;       // "p5.48xlarge"; from DMI or --label instance_type=
  std::string region;              // --label region=
  std::vector<std::string> hosts;  // sorted, unique; from the records' ranks if run.json lists none
};

RunMachine machine_of(const RunData& run);

// Names of the hardware that a record was measured on: the CPU's name and brand, or the ranks' GPUs and the machine's
// first GPU.
std::vector<std::string> hardware_names(const RunData& run, const Record& record);

}  // namespace assay
