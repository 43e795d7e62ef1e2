// Acquires, refreshes and releases the lock of a run directory.
#include "harness/record/run_lock.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/host.h"
#include "harness/core/plain_text.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace assay {

namespace fs = std::filesystem;

namespace {

constexpr auto refresh_interval = std::chrono::seconds(15);
constexpr double dead_after_seconds = 60;

// Never empty: a lock needs a word here.
std::string this_boot() {
  const std::string id = boot_id();
  return id.empty() ? "unknown" : id;
}

struct Holder {
  long pid = 0;
  std::string host;
  std::string boot;

  std::string text() const {
    return host.empty() ? fmt::format("process {}", pid) : fmt::format("process {} on {}", pid, host);
  }
};

std::optional<Holder> read_holder(int fd) {
  char text[512] = {};
  if (::pread(fd, text, sizeof text - 1, 0) <= 0) return std::nullopt;
  std::istringstream words(text);
  Holder holder;
  if (!(words >> holder.pid) || holder.pid <= 0) return std::nullopt;
  words >> holder.host >> holder.boot;
  return holder;
}

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds since the lock was touched, by the clock that stamps files in this folder.
double age_of(int fd, const fs::path& dir) {
  fs::path probe;
  const Descriptor other = create_temporary(dir, probe);
  struct stat now {
  }, then{};
  const bool known =
      other >= 0 && ::futimens(other, nullptr) == 0 && ::fstat(other, &now) == 0 && ::fstat(fd, &then) == 0;
  if (other >= 0) ::unlink(probe.c_str());
  return known ? seconds_of(now.st_mtim) - seconds_of(then.st_mtim) : 0;
}

[[noreturn]] void refuse(const fs::path& dir, const std::optional<Holder>& holder, const std::string& more = {}) {
  throw UsageError(fmt::format("{} is in use by another assay run{}{}", dir.string(),
                               holder ? fmt::format(" ({})", holder->text()) : std::string(), more));
}

// Decides by the file's content.
void refuse_while_held(int fd, const fs::path& dir, bool locked) {
  const std::optional<Holder> holder = read_holder(fd);
  if (!holder) return;
  if (holder->boot == this_boot()) {  // same kernel: flock() works, or the process shows
    if (!locked && ::kill(static_cast<pid_t>(holder->pid), 0) == 0) refuse(dir, holder);
    return;
  }
  if (holder->boot.empty()) return;  // written by a version that relied on the kernel alone
  const double age = age_of(fd, dir);
  if (age < dead_after_seconds)
    refuse(dir, holder,
           fmt::format(", whose last heartbeat was {:.0f} s ago; if it has died, this is found {:.0f} s after that",
                       std::max(age, 0.0), dead_after_seconds));
}

}  // namespace

RunLock::RunLock(const fs::path& dir) : refreshed_(std::chrono::steady_clock::now()) {
  const fs::path path = dir / ".lock";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd_ < 0) throw UsageError(fmt::format("{} is not writable: {}", dir.string(), std::strerror(errno)));
  const auto give_up = [&] { ::close(std::exchange(fd_, -1)); };
  const bool locked = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
  const bool other = !locked && (errno == EWOULDBLOCK || errno == EINTR);
  try {
    if (other) refuse(dir, read_holder(fd_));
    refuse_while_held(fd_, dir, locked);
  } catch (...) {
    give_up();
    throw;
  }
  try {
    if (::ftruncate(fd_, 0) != 0 || ::lseek(fd_, 0, SEEK_SET) != 0) throw Error(std::strerror(errno));
    write_all(fd_, fmt::format("{} {} {}\n", ::getpid(), this_host(), this_boot()), path);
  } catch (const Error& caught) {
    give_up();
    ::unlink(path.c_str());
    throw Error(fmt::format("{} cannot be written: {}", dir.string(), caught.what()), code_of_unwritten(caught.what()));
  }
}

RunLock::RunLock(RunLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)), refreshed_(other.refreshed_) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(refreshed_, other.refreshed_);
  return *this;
}

RunLock::~RunLock() {
  if (fd_ < 0) return;
  if (::ftruncate(fd_, 0) != 0) errno = 0;  // then its heartbeat gets old
  ::close(fd_);
}

void RunLock::refresh() {
  const auto now = std::chrono::steady_clock::now();
  if (fd_ < 0 || now - refreshed_ < refresh_interval) return;
  refreshed_ = now;
  if (::futimens(fd_, nullptr) != 0) errno = 0;  // writing the next record reports the error
}

}  // namespace assay
