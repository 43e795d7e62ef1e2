// The environment of a run, for run.json and `assay env`: the software and the machine.
#pragma once

#include "harness/json/fwd.h"
#include "harness/machine/machine.h"

namespace assay {

// Members, in this order: assay (version, commit, dirty, compiler, build type), libraries, host, os, cpu, numa_nodes,
// memory, gpus, drivers, virtualisation, cloud, limits. Base units (B, Hz, W, GT/s named); unknown values are null.
Json environment_json(const Machine& machine);

}  // namespace assay
