#include "cli/accept/stages.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/program.h"
#include "harness/core/streams.h"
#include "harness/hosts/process.h"
#include "harness/json/members.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace assay::cli {

namespace fs = std::filesystem;

namespace {

constexpr double patience_seconds = 60;  // for a run that was asked to end
constexpr std::size_t tail_bytes = 4000;
constexpr std::uintmax_t max_state_bytes = std::uintmax_t{16} << 20;

}  // namespace

AcceptState read_state(const fs::path& dir) {
  std::error_code none;
  if (!fs::is_regular_file(dir / state_file, none))
    throw UsageError(fmt::format("--resume {}: no acceptance there (it has no {})", dir.string(), state_file));
  try {
    auto state = read_value<AcceptState>(parse_untrusted(read_whole(dir / state_file, max_state_bytes)));
    if (state.id != state_form) throw Error(fmt::format("\"state\" is not \"{}\"", state_form));
    return state;
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    throw UsageError(fmt::format("--resume {}: {}: {}", dir.string(), state_file, error.what()));
  }
}

void write_state(const fs::path& dir, const AcceptState& state) {
  replace_file(dir / state_file, dump_document(json_of(state)));
}

Children::Children(std::function<void()> idle)
    : idle_(std::move(idle)),
      signals_(
          "the stage under way", [](const std::string& line) { say("{}\n", line); },
          [] { end_children(2, [](pid_t, int) {}); }) {
  adopt_orphans();
}

ChildEnd Children::run(const std::vector<std::string>& words, const fs::path& log) {
  ChildEnd end;
  Output out, errors;
  Descriptor file;
  if (!log.empty()) {
    file = Descriptor(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (file < 0) throw Error(fmt::format("{}: {}", log.string(), std::strerror(errno)));
  }
  ProcessRequest request;
  request.words = {program_command().string()};
  request.words.insert(request.words.end(), words.begin(), words.end());
  request.variables = variables_of_launcher();
  request.output = log.empty() ? out.writer() : static_cast<int>(file);
  request.errors = errors.writer();
  request.death_signal = SIGTERM;  // it ends its own processes
  const pid_t child = start_process(request);
  out.close_writer();
  errors.close_writer();

  std::optional<Clock::time_point> asked;
  bool killed = false;
  int status = 0;
  for (bool gone = false;;) {
    std::vector<pollfd> fds;
    signals_.add_fds(fds);
    for (const Output* output : {&out, &errors})
      if (output->fd() >= 0) fds.push_back({output->fd(), POLLIN, 0});
    (void)::poll(fds.data(), fds.size(), gone ? 0 : 500);
    signals_.read();
    idle_();
    const bool exited = !gone && ::waitpid(child, &status, WNOHANG) == child;
    end.out += out.read();
    const std::string more = errors.read();
    say_text(more);
    end.errors += more;
    if (end.errors.size() > tail_bytes) end.errors.erase(0, end.errors.size() - tail_bytes);
    if (gone) break;
    gone = exited;
    if (!gone && signals_.interrupted() && !asked) {
      ::kill(child, SIGTERM);
      asked = Clock::now();
    }
    if (!gone && asked && !killed && seconds_since(*asked) > patience_seconds) {
      ::kill(child, SIGKILL);
      killed = true;
    }
  }
  end_children(5, [](pid_t, int) {});
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 4;
  return end;
}

}  // namespace assay::cli
