// One supervisor a run directory, also where the directory is shared by several hosts.
#pragma once

#include <chrono>
#include <filesystem>

namespace assay {

// Held by flock() where the file system has it, which the kernel frees with the process. Some network file systems have
// none, and some keep it to each host: there the file's own word counts. It names process, host and boot, and is
// touched every 15 s while the run goes on; another host's word that is older than 60 s by the file server's own clock
// is that of a run that has died.
class RunLock {
 public:
  RunLock() = default;
  // Throws UsageError: the directory is not writable, or in use, naming process and host.
  explicit RunLock(const std::filesystem::path& dir);
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&& other) noexcept;
  // Frees the lock; the file stays, empty.
  ~RunLock();

  // Says that the run goes on; to be called every few seconds.
  void refresh();

 private:
  int fd_ = -1;
  std::chrono::steady_clock::time_point refreshed_;
};

}  // namespace assay
