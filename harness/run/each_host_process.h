// One host's part of --each-host: a whole run whose results go to the supervisor's run directory.
#pragma once

#include "harness/run/run.h"

#include <functional>
#include <span>

namespace assay {

// Body of `assay each-host`. Reads ASSAY_SUPERVISOR, ASSAY_TOKEN, ASSAY_RANK and ASSAY_SIZE, gets the plan over the
// channel and runs it. `fit` fills in this machine's limits and GPUs once the request's device is known. Ends at once
// when its supervisor does.
int each_host_main(std::span<const Family> families, const std::function<void(RunRequest&)>& fit);

// Leaves to this process and its children only the GPUs that ASSAY_GPUS names, "0,1,3": indices of those visible, in
// the order of PCI addresses. Without the variable it does nothing.
void use_named_gpus();

}  // namespace assay
