// One host's part of --each-host: the whole machinery of a run, whose records go to another host's directory.
#pragma once

#include "harness/run/run.h"

#include <functional>
#include <span>

namespace assay {

// Body of `assay each-host`. Reads ASSAY_SUPERVISOR, ASSAY_TOKEN, ASSAY_RANK and ASSAY_SIZE, takes the plan over the
// channel, runs it here. `fit` fills in what the request must know of this machine once its device is known. Ends at
// once when its supervisor does.
int each_host_main(std::span<const Family> families, const std::function<void(RunRequest&)>& fit);

}  // namespace assay
