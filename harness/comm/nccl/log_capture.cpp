#include "harness/comm/nccl/log_capture.h"

#include "harness/comm/nccl/window.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace assay::nccl {

namespace {

constexpr const char* subsystems = "INIT,ENV,NET,P2P,SHM,NVLS";

// Makes NCCL read its debug variables again. Looked up: exported since 2.24, and due to be removed some day.
using Reset = void (*)();
Reset find_reset() { return reinterpret_cast<Reset>(find_symbol("ncclResetDebugInit")); }

}  // namespace

LogCapture::LogCapture() {
  NcclLogFile file = open_nccl_log();
  fd_ = file.fd;
  why_not_ = std::move(file.why_not);
  if (fd_ < 0) return;
  // NCCL opens, and truncates, the file each time it reads its variables.
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_DEBUG_SUBSYS", subsystems, 1);
  setenv("NCCL_DEBUG_FILE", file.path.c_str(), 1);
}

LogCapture::~LogCapture() {
  if (fd_ >= 0) ::close(fd_);
}

const NcclLog& LogCapture::read() {
  if (fd_ < 0) return log_;
  struct stat state {};
  if (::fstat(fd_, &state) == 0 && state.st_size < read_) read_ = 0;
  char block[1 << 16];
  for (ssize_t got; (got = ::pread(fd_, block, sizeof block, read_)) > 0; read_ += got)
    log_.add({block, static_cast<std::size_t>(got)});
  return log_;
}

bool LogCapture::log_choices(bool on) {
  static const Reset reset = find_reset();
  if (fd_ < 0 || !reset) return false;
  read();
  // Drop what was read, so that it cannot be taken for new output.
  if (::ftruncate(fd_, 0) != 0) return false;
  read_ = 0;
  setenv("NCCL_DEBUG_SUBSYS", on ? "INIT,ENV,NET,P2P,SHM,NVLS,TUNING" : subsystems, 1);
  reset();
  return true;
}

LogCapture& log_capture() {
  static LogCapture capture;
  return capture;
}

}  // namespace assay::nccl
