// Where a gate runs: one per host at a time, in a folder that is gone afterwards.
#pragma once

#include "harness/core/files.h"

#include <filesystem>
#include <string>

namespace assay::gate {

// Two gates on a host would disturb each other. A name that the kernel frees with this process, and of which no file is
// left. Any user could take such a name, so that root's gates lock a file in /run.
class HostLock {
 public:
  HostLock() = default;
  ~HostLock();
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;
  bool take();

 private:
  Descriptor fd_;
  std::filesystem::path file_;
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
