#include "harness/fitness/gate/place.h"

#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/trust.h"
#include "harness/process/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

namespace assay::gate {

namespace fs = std::filesystem;

HostLock::~HostLock() {
  if (!file_.empty()) ::unlink(file_.c_str());
}

bool HostLock::take() {
  const std::string name = "assay-gate-" + this_host().substr(0, 64);
  if (const fs::path file = "/run/" + name; as_root() && why_untrusted(file).empty()) {
    Descriptor lock(::open(file.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (lock >= 0 && ::flock(lock, LOCK_EX | LOCK_NB) != 0) return false;
    struct stat about {};
    if (lock >= 0 && (::fstat(lock, &about) != 0 || about.st_nlink == 0)) return false;  // removed by who held it
    if (lock >= 0) {
      fd_ = std::move(lock);
      file_ = file;
      return true;
    }
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // a zero first: in no folder
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (fd_ < 0) fd_ = Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), length) == 0;
}

Workspace::Workspace() {
  std::error_code none;
  const fs::path folder = fs::temp_directory_path(none);
  std::string name = ((none ? fs::path("/tmp") : folder) / "assay-gate-XXXXXX").string();
  if (::mkdtemp(name.data()))
    path_ = name;
  else
    problem_ = fmt::format("no folder {}: {}", name, std::strerror(errno));
}

Workspace::~Workspace() {
  if (path_.empty()) return;
  try {
    // A program of its own, so that one that is stuck does not hold the host's lock.
    (void)run_process({.process = {.words = {"/bin/rm", "-rf", "--", path_.string()}, .variables = {}},
                       .limit_seconds = 0.3,
                       .death_seconds = 0});
  } catch (const Error&) {
  }
}

}  // namespace assay::gate
