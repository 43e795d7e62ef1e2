#include "harness/fitness/gate/place.h"

#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/process/run.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

namespace assay::gate {

namespace fs = std::filesystem;

HostLock::HostLock() : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

HostLock::~HostLock() {
  if (fd_ >= 0) ::close(fd_);
}

bool HostLock::take() const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "assay-gate-" + this_host().substr(0, 64);
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // a zero first: in no folder
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
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
