#include "cli/accept/stages.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/program.h"
#include "harness/core/streams.h"
#include "harness/json/members.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace assay::cli {

namespace fs = std::filesystem;

namespace {

constexpr double patience_seconds = 60;  // for a run that was asked to end
constexpr std::size_t max_output = std::size_t{1} << 30;
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

FinishedProcess run_self(Children& children, const std::vector<std::string>& words, const fs::path& log) {
  ProcessRun run;
  run.process.words = {program_command().string()};
  run.process.words.insert(run.process.words.end(), words.begin(), words.end());
  run.process.variables = variables_of_launcher();
  run.process.death_signal = SIGTERM;  // it ends its own processes
  run.grace_seconds = patience_seconds;
  run.max_output = max_output;
  run.on_errors = say_text;
  Descriptor file;
  if (!log.empty()) {
    file = Descriptor(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (file < 0) throw Error(fmt::format("{}: {}", log.string(), std::strerror(errno)));
    run.process.output = file;
  }
  return children.run(run);
}

}  // namespace assay::cli
