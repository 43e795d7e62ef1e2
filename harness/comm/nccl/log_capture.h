// This process's NCCL log, captured in memory and read as it grows.
#pragma once

#include "harness/comm/nccl_log.h"

#include <string>

namespace assay::nccl {

// Directs NCCL's log at level INFO into an anonymous file; create it before the process's first NCCL call. Where that
// is impossible, or the user has set one of NCCL_DEBUG*, nothing is captured and no variable is changed.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  // Empty if the log is captured.
  const std::string& why_not() const { return why_not_; }
  // The log so far.
  const NcclLog& read();
  // Turns NCCL's logging of each call's algorithm on or off; false if this NCCL cannot change it. No other thread may
  // call NCCL meanwhile.
  bool log_choices(bool on);
  void forget_choice() { log_.forget_choice(); }

 private:
  int fd_ = -1;
  std::string why_not_;
  long long read_ = 0;
  NcclLog log_;
};

// The process's log; created at the first call.
LogCapture& log_capture();

}  // namespace assay::nccl
