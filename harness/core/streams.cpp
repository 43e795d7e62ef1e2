#include "harness/core/streams.h"

#include "harness/core/plain_text.h"
#include "harness/core/secrets.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

namespace assay {

namespace {

int stdout_error = 0;

}  // namespace

void prepare_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  // open() takes the lowest free number. O_PATH needs no /dev, and such a descriptor can be neither read nor written.
  for (int fd = 0; fd >= 0 && fd <= STDERR_FILENO;) {
    fd = ::open("/", O_PATH);
    if (fd > STDERR_FILENO) ::close(fd);
  }
}

void say_text(std::string_view text) noexcept {
  std::string plain;
  try {
    text = plain = plain_lines(mask_secrets(text));  // it may quote files, flags, or what other hosts say
  } catch (const std::exception&) {                  // no memory for it
    return;
  }
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void show_text(std::string_view text) noexcept try {
  const std::string masked = mask_secrets(text);
  if (std::fwrite(masked.data(), 1, masked.size(), stdout) < masked.size() && stdout_error == 0) stdout_error = errno;
} catch (const std::exception&) {
  if (stdout_error == 0) stdout_error = ENOMEM;
}

int flush_stdout() noexcept {
  if (std::fflush(stdout) != 0 && stdout_error == 0) stdout_error = errno;
  if (std::ferror(stdout) && stdout_error == 0) stdout_error = EIO;  // another writer saw which
  return stdout_error;
}

}  // namespace assay
