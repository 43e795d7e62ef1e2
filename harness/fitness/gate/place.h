// Where a gate runs: one per host at a time, in a folder that is gone afterwards.
#pragma once

#include <filesystem>
#include <string>

namespace assay::gate {

// Two gates on a host would disturb each other. A name that the kernel frees with this process, and of which no file is
// left.
class HostLock {
 public:
  HostLock();
  ~HostLock();
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;
  bool take() const;

 private:
  int fd_;
};

// A folder that is removed by another process, which may get stuck on its file system.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  // Empty if there is none, and why.
  const std::filesystem::path& path() const { return path_; }
  const std::string& problem() const { return problem_; }

 private:
  std::filesystem::path path_;
  std::string problem_;
};

}  // namespace assay::gate
