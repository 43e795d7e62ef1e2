// NCCL's log of this process, kept in memory and read as it grows.
#pragma once

#include "harness/comm/nccl_log.h"

namespace assay::nccl {

// Directs NCCL's log at level INFO into a file without a name; must be made before the process's first NCCL call. Where
// the user has set NCCL_DEBUG the log is theirs, and nothing is known here.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  // With what was written by now.
  const NcclLog& read();
  // From here on NCCL logs which algorithm each call takes (`on`), or no longer; false where this NCCL cannot change.
  // Not while another thread calls NCCL.
  bool log_choices(bool on);
  void forget_choice() { log_.forget_choice(); }

 private:
  int fd_ = -1;
  long long read_ = 0;
  NcclLog log_;
};

// The process's log; made at the first call.
LogCapture& log_capture();

}  // namespace assay::nccl
