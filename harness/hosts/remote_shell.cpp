// The client of a daemon on another host.
#include "harness/hosts/remote_shell.h"

#include "harness/channel/channel.h"
#include "harness/channel/connect.h"
#include "harness/core/error.h"
#include "harness/record/json_reader.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace assay {

namespace {

constexpr std::size_t line_bytes = 1u << 20;

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

int remote_shell_main(const std::string& host, const std::vector<std::string>& words) {
  const char* address = std::getenv("ASSAY_AGENTS");
  const char* token = std::getenv("ASSAY_AGENTS_TOKEN");
  if (!address || !token) throw UsageError("remote-shell: started by mpirun of assay run, by nobody else");
  // The supervisor ends the command when this connection ends.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  std::string command;
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + word;
  const int fd = connect_to(address);
  if (!send_line(fd, hello_message("guest", token, 0, 0), 5.0) ||
      !send_line(fd, {{"type", "shell"}, {"target", host}, {"command", command}}, 5.0))
    throw Error("remote-shell: the supervisor does not listen");
  LineBuffer buffer(line_bytes);
  char block[65536];
  for (;;) {
    const ssize_t got = ::recv(fd, block, sizeof block, 0);
    if (got < 0 && errno == EINTR) continue;
    std::vector<std::string> lines;
    if (got <= 0 || !buffer.feed({block, static_cast<std::size_t>(got)}, lines))
      throw Error("remote-shell: the supervisor has gone");
    for (const std::string& line : lines) {
      const Json message = parse_untrusted(line);
      const JsonReader reader(message, "");
      const std::string type = reader.text("type");
      if (type == "output") fmt::print(stderr, "{}", reader.text("text"));
      if (type == "refused") throw Error(reader.text("reason"));
      if (type == "ended") return exit_code(static_cast<int>(reader.integer("status", 0)));
    }
  }
}

}  // namespace assay
