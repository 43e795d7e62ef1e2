// How the Python processes of a job get the hook.
#pragma once

#include "harness/process/process.h"

#include <string>
#include <vector>

namespace assay::watch {

// The environment of the job: this process's, with the hooks' folder first in PYTHONPATH if there is one. Traces of
// recorded steps go to the folder `traces`; empty: none are recorded.
Variables variables_with_hook(const std::string& hook_folder, const std::string& address, const std::string& traces);
// The folder of the hooks beside the binary or in the source tree; empty if there is none.
std::string hook_folder();
// Why Python, if that is what the words start, will not run the hooks: its options -S, -E and -I skip them. Empty if
// it will, or if the command is something else.
std::string why_not_hooked(const std::vector<std::string>& words);

}  // namespace assay::watch
