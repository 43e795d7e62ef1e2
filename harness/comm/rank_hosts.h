// Which host each rank of a world runs on.
#pragma once

#include "harness/comm/communicator.h"

#include <string>
#include <vector>

namespace assay {

// The launcher's name (host.h) for each rank's host. Every rank calls it.
std::vector<std::string> hosts_of_ranks(Communicator& comm);

}  // namespace assay
