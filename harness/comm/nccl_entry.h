// What libassay-cuda.so exports for collectives between GPUs. Includes nothing of NCCL or CUDA, so that the binary
// needs none.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/comm/host_group.h"

#include <functional>
#include <memory>
#include <string>

namespace assay {

struct NcclWorld {
  int rank = 0;
  int size = 1;
  bool several_hosts = false;
  bool share_gpu = false;        // ranks may share a GPU: sockets on loopback, no InfiniBand
  double patience_seconds = 60;  // for all ranks to arrive
};

// How the ranks of a world learn where rank 0 is and under which id they meet: rank 0 gives that text, the others an
// empty one; every rank is given rank 0's. Throws Error when it does not come.
using ShareId = HostGroup::Share;

// Returns a new communicator over the whole world, owned by the caller, on the calling thread's current GPU. Throws
// Error with NCCL's own word, or naming the call that waited too long for the other ranks.
using NcclEntry = Communicator* (*)(const NcclWorld&, const ShareId&);
inline constexpr const char* nccl_entry_name = "assay_nccl_communicator";

// Loads libassay-cuda.so and calls its entry. Throws Error; also when that module was built without NCCL.
std::unique_ptr<Communicator> make_nccl_communicator(const NcclWorld& world, const ShareId& share);

}  // namespace assay
