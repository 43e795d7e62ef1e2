// The meeting of the ranks: environment, id, and the wait for all of them.
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

// What several ranks of one GPU need in their environment; other worlds need nothing. Before the first NCCL call.
void prepare_environment(const NcclWorld& world);

// "2.28.9", of the library that is loaded.
std::string version_text();

// The hosts' side of the world. Rank 0 makes NCCL's id, `share` carries it, and note() is the id on every rank.
std::unique_ptr<HostGroup> meet_hosts(const NcclWorld& world, const ShareId& share);

// All ranks meet under the id that the hosts agreed on. Blocking communicators are the faster ones, and a call
// that waits for a rank that never comes cannot be taken back: it is made by a thread of its own, which is left waiting
// when patience ends. Throws Error naming the call; the process must then end.
ncclComm_t meet(const NcclWorld& world, const HostGroup& hosts);

// Ends the process: other ranks may wait for this one for ever.
[[noreturn]] void leave(ncclComm_t comm, const std::string& why);

// Polls a communicator's asynchronous error. A GPU that waits for a rank that is gone waits for ever, and so does the
// thread that synchronises with it: a moment after an error this process ends, and its supervisor ends the rest.
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

// NCCL's word for a result, with its last warning; `comm` may be null.
std::string describe(ncclResult_t result, ncclComm_t comm);

}  // namespace assay::nccl
