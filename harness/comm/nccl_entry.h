// The functions that libassay-cuda.so exports for collectives between GPUs. Includes no NCCL or CUDA header, so the
// binary needs neither.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/comm/host_group.h"

#include <memory>

namespace assay {

struct NcclWorld {
  int rank = 0;
  int size = 1;
  bool several_hosts = false;
  bool share_gpu = false;       // ranks may share a GPU: sockets on loopback, no InfiniBand
  double timeout_seconds = 60;  // time for all ranks to arrive
};

// Passes rank 0's address and NCCL id to all ranks: rank 0 calls it with that text, the others with ""; all get rank
// 0's. Throws Error if the text does not arrive.
using ShareId = HostGroup::Share;

// Returns a new communicator over the whole world, owned by the caller, on the calling thread's current GPU. Throws
// Error with NCCL's message, or naming the call that timed out.
using NcclEntry = Communicator* (*)(const NcclWorld&, const ShareId&);
inline constexpr const char* nccl_entry_name = "assay_nccl_communicator";

// Loads libassay-cuda.so and calls its entry. Throws Error, also if that module was built without NCCL.
std::unique_ptr<Communicator> make_nccl_communicator(const NcclWorld& world, const ShareId& share);

}  // namespace assay
