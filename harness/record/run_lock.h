// One supervisor per run directory, even if several hosts share the directory.
#pragma once

#include <chrono>
#include <filesystem>

namespace assay {

// Uses flock() if the file system supports it; the kernel releases it with the process. Some network file systems have
// no flock(), and on some it covers one host only: there the file's content and age decide. It names process, host and
// boot, and is touched as a heartbeat every 15 s during the run; if another host's is older than 60 s by the file
// server's clock, that run has died.
class RunLock {
 public:
  RunLock() = default;
  // Throws UsageError if the directory is not writable, or in use (naming process and host).
  explicit RunLock(const std::filesystem::path& dir);
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&& other) noexcept;
  // Releases the lock; the file stays, empty.
  ~RunLock();

  // The heartbeat; call it every few seconds.
  void refresh();

 private:
  int fd_ = -1;
  std::chrono::steady_clock::time_point refreshed_;
};

}  // namespace assay
