// The emulated communicator, shared by the stand-ins of NCCL's calls and of its memory.
#pragma once

#include "tests/emulation/nccl_world.h"

#include <nccl.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>

struct ncclComm {
  std::unique_ptr<assay::emulation::SharedWorld> world;
  int device = 0;
  std::string host;
  std::shared_ptr<int> calls = std::make_shared<int>(0);  // shared with each call in a graph
  assay::emulation::ConnectionMemory memory;
  std::map<const char*, std::size_t> windows;  // symmetric ones: their start and bytes
};

namespace assay::emulation {

// NCCL's version code of a stand-in: the headers', or the script's.
int nccl_version();
// Logs a warning, which is also the last error, and returns `result`.
ncclResult_t warn(ncclResult_t result, int device, const std::string& text);
// The result of a call, by the fault of its world.
ncclResult_t result_of(ncclComm_t comm);
// Whether the address is in a symmetric window.
bool in_window(ncclComm_t comm, const void* address);

}  // namespace assay::emulation
