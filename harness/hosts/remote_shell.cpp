// Runs a daemon of mpirun on another host.
#include "harness/hosts/remote_shell.h"

#include "harness/channel/connect.h"
#include "harness/core/error.h"
#include "harness/core/streams.h"

#include <fmt/ranges.h>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <utility>

namespace assay {

namespace {

constexpr std::size_t line_bytes = 1u << 20;

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

int remote_shell_main(const std::string& host, const std::vector<std::string>& words) {
  const char* address = std::getenv("ASSAY_AGENTS");
  const char* token = std::getenv("ASSAY_AGENTS_TOKEN");
  if (!address || !token) throw UsageError("remote-shell: only mpirun under assay run starts it");
  // When mpirun dies, so does this process with its connection; then the supervisor ends the command.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const std::string command = fmt::format("{}", fmt::join(words, " "));
  ChannelClient client(address, token, line_bytes);
  if (!client.send(hello_message("guest", 0, 0), 5.0) || !client.send(message::Shell{host, command}, 5.0))
    throw Error("remote-shell: the supervisor does not read");
  std::vector<Message> messages;
  while (client.receive(messages)) {
    for (const Message& message : std::exchange(messages, {})) {
      if (const auto* printed = std::get_if<message::Printed>(&message)) say_text(printed->text);
      if (const auto* refused = std::get_if<message::Refused>(&message)) throw Error(refused->reason);
      if (const auto* ended = std::get_if<message::Ended>(&message)) return exit_code(ended->status);
    }
  }
  throw Error("remote-shell: the supervisor is gone");
}

}  // namespace assay
