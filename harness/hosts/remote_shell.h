// `assay remote-shell HOST COMMAND...`: the remote shell that mpirun is given.
#pragma once

#include <string>
#include <vector>

namespace assay {

// Asks the supervisor at ASSAY_AGENTS (with ASSAY_AGENTS_TOKEN) to have the agent of `host` run the words as one line
// of sh; prints what that prints and returns its exit code. Throws Error.
int remote_shell_main(const std::string& host, const std::vector<std::string>& words);

}  // namespace assay
