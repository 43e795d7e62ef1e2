// The environment of a run, for run.json and `assay env`: the software and the machine.
#pragma once

#include "harness/json/fwd.h"
#include "harness/machine/machine.h"

namespace assay {

// Assay's build, libraries, host, system, CPU, NUMA nodes, memory, GPUs, drivers, container or virtual machine, cloud,
// DMI, limits, clock source, load and steal. Base units; unknown values are null.
Json environment_json(const Machine& machine);

}  // namespace assay
