// `assay remote-shell HOST COMMAND...`: what mpirun takes for its remote shell.
#pragma once

#include <string>
#include <vector>

namespace assay {

// Has the agent of `host` run the words as one line of sh, by asking the supervisor at ASSAY_AGENTS (with
// ASSAY_AGENTS_TOKEN); passes on what it prints and returns its exit code. Throws Error.
int remote_shell_main(const std::string& host, const std::vector<std::string>& words);

}  // namespace assay
