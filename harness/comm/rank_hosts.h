// Which host each rank of a world runs on.
#pragma once

#include "harness/comm/communicator.h"

#include <string>
#include <vector>

namespace assay {

// By rank, the name by which the launcher knows its host (host.h). Every rank calls it.
std::vector<std::string> hosts_of_ranks(Communicator& comm);

}  // namespace assay
