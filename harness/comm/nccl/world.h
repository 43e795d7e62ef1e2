// Initialising NCCL across ranks: the environment, the id and the wait for all of them.
#pragma once

#include "harness/comm/nccl_entry.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace assay::nccl {

// Sets the environment variables that ranks sharing a GPU need. Call it before the first NCCL call.
void prepare_environment(const NcclWorld& world);

// "2.28.9", of the loaded library.
std::string version_text();

// Connects the host side of the world. Rank 0 creates NCCL's id, `share` distributes it, note() has it on every rank.
std::unique_ptr<HostGroup> connect_hosts(const NcclWorld& world, const ShareId& share);

// Initialises the communicator under the id that the hosts agreed on. Blocking communicators are faster, but a call
// that waits for a missing rank cannot be cancelled: a separate thread makes it and is abandoned at the timeout. Throws
// Error naming the call; the process must then exit.
ncclComm_t init_communicator(const NcclWorld& world, const HostGroup& hosts);

// Ends the process, so that no other rank waits for it forever.
[[noreturn]] void abort_process(ncclComm_t comm, const std::string& why);

// Polls a communicator for asynchronous errors. A GPU that waits for a lost rank waits forever, and so does the thread
// that synchronises with it: shortly after an error this process ends, and its supervisor ends the others.
class Watch {
 public:
  explicit Watch(ncclComm_t comm, int rank);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void loop();

  ncclComm_t comm_;
  int rank_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
};

// NCCL's message for a result, with its last warning; `comm` may be null.
std::string describe(ncclResult_t result, ncclComm_t comm);

}  // namespace assay::nccl
