// Durable writes by plain system calls, so that every error has a reason.
#include "harness/record/files.h"

#include "harness/core/error.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace assay {

namespace {

[[noreturn]] void failed(const char* action, const std::filesystem::path& path, int error) {
  throw Error(fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(error)));
}

}  // namespace

void ignore_file_size_signal() {
  static const bool done = [] {
    std::signal(SIGXFSZ, SIG_IGN);
    return true;
  }();
  (void)done;
}

void write_all(int fd, std::string_view text, const std::filesystem::path& path) {
  ignore_file_size_signal();
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      failed("write", path, errno);
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) failed("open", folder, errno);
  // Some file systems cannot sync a folder (EINVAL).
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  if (result != 0 && error != EINVAL) failed("sync", folder, error);
}

void sync_file_system(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) failed("open", path, errno);
  const int result = ::syncfs(fd);
  const int error = errno;
  ::close(fd);
  if (result != 0) failed("sync", path, error);
}

void replace_file(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) failed("create", temporary, errno);
  try {
    write_all(fd, text, temporary);
    if (::fsync(fd) != 0) failed("sync", temporary, errno);
  } catch (...) {
    ::close(fd);
    ::unlink(temporary.c_str());
    throw;
  }
  ::close(fd);
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    failed("replace", path, error);
  }
  sync_folder(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
}

std::string read_whole(const std::filesystem::path& path, std::uintmax_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) failed("read", path, errno);
  std::string text;
  char block[65536];
  for (;;) {
    const ssize_t got = ::read(fd, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    const int error = errno;
    if (got <= 0 || text.size() + static_cast<std::size_t>(got) > limit) {
      ::close(fd);
      if (got < 0) failed("read", path, error);
      if (got == 0) return text;
      throw Error(fmt::format("cannot read {}: longer than {} bytes", path.string(), limit));
    }
    text.append(block, static_cast<std::size_t>(got));
  }
}

}  // namespace assay
