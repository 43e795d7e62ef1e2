#include "harness/machine/ask_process.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace assay {

std::string ask_in_child_process(int timeout_ms, const std::function<std::string()>& ask) {
  std::array<int, 2> ends;
  if (pipe(ends.data()) != 0) return {};
  const auto child = fork();
  if (child == 0) {
    const std::string answer = ask();
    _exit(answer.empty() || write(ends[1], answer.data(), answer.size()) < 0 ? 1 : 0);
  }
  close(ends[1]);
  std::string answer;
  if (child > 0) {
    std::array<char, 4096> text;
    pollfd ready{ends[0], POLLIN, 0};
    if (poll(&ready, 1, timeout_ms) > 0)
      if (const auto got = read(ends[0], text.data(), text.size()); got > 0)
        answer.assign(text.data(), static_cast<std::size_t>(got));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  close(ends[0]);
  return answer;
}

}  // namespace assay
