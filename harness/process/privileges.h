// What a program of root's takes from its environment, and how it gives up being root's.
#pragma once

#include "harness/process/process.h"

#include <string>
#include <vector>

namespace assay {

// This process's environment for a program of root's that relies on nothing that others can set: PATH is the system's,
// and of all others only variables of Assay and of Slurm, and a few that name no file, are kept. TMPDIR is, if no other
// user can change that folder. LD_LIBRARY_PATH has folders of a driver that lie in fixed places, if there are any.
// `left_out` gets the names of what the dynamic loader would have read, and of TMPDIR.
Variables trusted_variables(std::vector<std::string>& left_out);
// Makes this process nobody's (65534, no further groups), for good. It still ends with its parent, and can read what
// /proc says of it. Throws Error if it must not.
void become_nobody();
inline constexpr unsigned nobody = 65534;

}  // namespace assay
