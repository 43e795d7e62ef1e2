// A machine in a few lines, as `assay env` shows it.
#pragma once

#include "harness/json/fwd.h"
#include "harness/machine/hardware.h"
#include "harness/machine/machine.h"

#include <string>
#include <vector>

namespace assay {

// `libraries` as in environment_json(): versions by name. A GPU without a driver has the name of the sheet that lists
// its PCI id.
std::string machine_text(const Machine& machine, const Json& libraries, const std::vector<HardwareSheet>& sheets);

}  // namespace assay
