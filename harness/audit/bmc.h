// The event log of the machine's management controller (BMC), by ipmitool.
#pragma once

#include "harness/machine/root.h"

#include <string>
#include <vector>

namespace assay::audit {

inline constexpr int max_bmc_entries = 200;

// The newest entries of its system event log, the newest last; a first line that begins with # says where it was cut,
// or why there are none: no ipmitool, no rights, no answer in time, another machine's root.
std::vector<std::string> bmc_log(const Root& root);

}  // namespace assay::audit
