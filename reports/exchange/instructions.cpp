#include "reports/exchange/instructions.h"

#include "harness/core/files.h"
#include "harness/core/text.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

namespace assay::report {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_log_bytes = std::size_t{16} << 20;

// "==7== I   refs:      1,234,567": the number; absent for other lines.
std::optional<double> refs_in(std::string_view line) {
  const std::size_t at = line.find("refs:");
  if (at == line.npos || line.find("== I ") == line.npos) return std::nullopt;
  std::string digits;
  for (const char c : line.substr(at))
    if (c >= '0' && c <= '9') digits += c;
  double count = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  return read.ec == std::errc() ? std::optional(count) : std::nullopt;
}

}  // namespace

InstructionCount instructions_in_logs(const std::vector<std::string>& logs) {
  InstructionCount found;
  for (const std::string& log : logs) {
    if (log.find("unhandled instruction bytes") != log.npos || log.find("Unrecognised instruction") != log.npos)
      return {{},
              "valgrind does not know an instruction of this program (AVX-512, most often): count a build for an older "
              "CPU, or with --counts perf"};
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);)
      if (const auto count = refs_in(line)) found.count = found.count.value_or(0) + *count;
  }
  if (!found.count) found.why = "valgrind printed no count of instructions";
  return found;
}

InstructionCount count_by_valgrind(const ToolCommand& command,
                                   const std::function<FinishedProcess(const ProcessRun&)>& run) {
  const std::string valgrind = find_program("valgrind");
  if (valgrind.empty()) return {{}, "there is no valgrind on the PATH"};
  const TemporaryFolder folder(fs::temp_directory_path() / "assay-counts");
  ProcessRun counted;
  counted.process = {.words = {valgrind, "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
                               "--trace-children=yes", "--log-file=" + (folder.path() / "%p").string(), "/bin/sh", "-c",
                               command.line()},
                     .variables = variables_of_launcher()};
  counted.process.variables.try_emplace("PYTHONHASHSEED", "0");
  counted.limit_seconds = command.limit_seconds;
  const FinishedProcess done = run(counted);
  std::vector<std::string> logs;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path()))
    logs.push_back(read_whole(entry.path(), max_log_bytes));
  InstructionCount found = instructions_in_logs(logs);
  if (found.count && (!done.ended() || !done.problem.empty()))
    return {{}, fmt::format("under valgrind the command {}", done.ended() ? done.problem : "did not end")};
  return found;
}

void add_instructions(ToolOutput& output, const std::string& name, double count) {
  if (output.files.empty() || output.files.back().contents.runs.empty()) return;
  ForeignFile& file = output.files.back().contents;
  file.runs.back().add({name, "instructions", "instructions", Better::lower, false, {count}}, file.texts);
}

}  // namespace assay::report
