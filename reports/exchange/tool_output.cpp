#include "reports/exchange/tool_output.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "reports/exchange/import.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <set>
#include <tuple>

namespace assay::report {

namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t max_bytes = std::uintmax_t{256} << 20;

// What changes when a file is written.
using State = std::tuple<ino_t, off_t, std::time_t, long>;

// The files in which a command may leave figures.
class ResultFiles {
 public:
  explicit ResultFiles(const ToolCommand& command) : command_(command) {
    for (const std::string& path : paths()) before_[path] = state_of(path);
  }

  // Those that are new or were written since.
  std::vector<std::string> written() const {
    std::vector<std::string> found;
    for (const std::string& path : paths()) {
      const auto now = state_of(path);
      const auto was = before_.find(path);
      if (now && (was == before_.end() || was->second != now)) found.push_back(path);
    }
    return found;
  }

 private:
  std::optional<State> state_of(const std::string& path) const {
    struct stat about {};
    if (::stat((command_.folder / path).c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
    return State(about.st_ino, about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
  }

  std::set<std::string> paths() const {
    std::set<std::string> all(command_.files.begin(), command_.files.end());
    constexpr std::string_view between = " \t\n='\";,()<>&|";
    const std::string& line = command_.shell;
    for (std::size_t at = line.find_first_not_of(between); at != line.npos;) {
      const std::size_t end = std::min(line.find_first_of(between, at), line.size());
      if (const std::string word = line.substr(at, end - at); word.find('.') != word.npos && word.size() < 4096)
        all.insert(word);
      at = line.find_first_not_of(between, end);
    }
    for (const char* folder : {".benchmarks", ".asv/results"}) {
      std::error_code none;
      for (fs::recursive_directory_iterator entry(command_.folder / folder, none), end; !none && entry != end;
           entry.increment(none))
        if (entry->path().extension() == ".json" && entry->path().filename() != "machine.json")
          all.insert(fs::relative(entry->path(), command_.folder, none).string());
    }
    return all;
  }

  const ToolCommand& command_;
  std::map<std::string, std::optional<State>> before_;
};

std::optional<RecognisedFile> figures_of(const ToolCommand& command, const std::string& text, const std::string& name) {
  if (command.metrics.empty()) return recognise(text, name);
  const auto more = [text, given = false](std::string& to) mutable {
    if (std::exchange(given, true)) return false;
    to += text;
    return true;
  };
  return RecognisedFile{"lines", read_named({.file = name, .more = more}, command.metrics, command.better)};
}

}  // namespace

std::string ToolCommand::line() const { return folder == "." ? shell : shell_in_folder(folder, shell); }

std::string shell_line(const std::vector<std::string>& words) {
  if (words.size() == 1) return words.front();
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + short_shell_word(word);
  return line;
}

ToolOutput run_tool(const ToolCommand& command, const std::function<FinishedProcess(const ProcessRun&)>& run) {
  const ResultFiles files(command);
  ToolOutput output;
  const auto now = std::chrono::system_clock::now();
  output.started = utc_text(std::chrono::system_clock::to_time_t(now));
  output.moment = std::chrono::nanoseconds(now.time_since_epoch()).count();
  ProcessRun shell;
  shell.process = {.words = {"/bin/sh", "-c", command.line()}, .variables = variables_of_launcher()};
  shell.limit_seconds = command.limit_seconds;
  shell.max_output = max_bytes;
  shell.on_errors = [](std::string_view text) { say_text(text); };
  const FinishedProcess done = run(shell);
  output.problem = done.problem;
  output.stopped = done.stopped;
  const auto add = [&](const std::string& text, const std::string& name) {
    if (auto found = figures_of(command, text, name)) {
      output.files.push_back(std::move(*found));
      output.names.push_back(name);
    }
  };
  if (command.files.empty()) add(done.output, "output");
  const std::vector<std::string> written = files.written();
  for (const std::string& file : written)
    if (output.files.empty() || std::ranges::find(command.files, file) != command.files.end())
      add(read_whole(command.folder / file, max_bytes), file);
  if (!output.files.empty() || !done.problem.empty() || !done.ended()) return output;
  for (const std::string& file : command.files)
    if (std::ranges::find(written, file) == written.end())
      throw UsageError(fmt::format("{} was not written by {}", file, in_quotes(command.shell)));
  const std::string begin = one_line(first_line(std::string(trim(done.output))), 60);
  throw UsageError(fmt::format(
      "no figure in what {} printed{}: known are {}; name a file that it writes with --file, or a figure with --metric",
      in_quotes(command.shell), begin.empty() ? " (nothing)" : fmt::format(" (it begins {})", in_quotes(begin)),
      recognised_formats));
}

}  // namespace assay::report
