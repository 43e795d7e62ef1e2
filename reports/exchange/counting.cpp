#include "reports/exchange/instructions.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/process/child_counter.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

namespace assay::report {

namespace {

namespace fs = std::filesystem;

constexpr const char* no_valgrind = "there is no valgrind on the PATH";
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

// A process under valgrind, whose logs go to the folder.
ProcessRun under_valgrind(ProcessRun run, const std::string& valgrind, const fs::path& folder) {
  std::vector<std::string> words = {valgrind,
                                    "--tool=cachegrind",
                                    "--cache-sim=no",
                                    "--cachegrind-out-file=/dev/null",
                                    "--trace-children=yes",
                                    "--log-file=" + (folder / "%p").string()};
  run.process.words.insert(run.process.words.begin(), words.begin(), words.end());
  run.process.variables.try_emplace("PYTHONHASHSEED", "0");
  return run;
}

InstructionCount instructions_in(const fs::path& folder) {
  std::vector<std::string> logs;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    logs.push_back(read_whole(entry.path(), max_log_bytes));
  return instructions_in_logs(logs);
}

ForeignFigure instructions_of(const std::string& name, double count) {
  return {name, "instructions", "instructions", Better::lower, false, {count}};
}

// The cases that have a figure.
std::vector<std::string> names_of(const ForeignFile& file, const ForeignRun& run) {
  std::vector<std::string> names;
  run.each_case(file.texts, [&](const std::vector<ForeignFigure>& figures) {
    if (figures.front().status == Status::ok) names.push_back(figures.front().name);
  });
  return names;
}

// Runs a command that measures this case and no other, and counts what it takes.
InstructionCount count_alone(const ToolCommand& command, const std::string& name, const std::string& how,
                             const std::function<FinishedProcess(const ProcessRun&)>& run) {
  const std::string valgrind = how == "valgrind" ? find_program("valgrind") : std::string();
  if (how == "valgrind" && valgrind.empty()) return {{}, no_valgrind};
  const TemporaryFolder folder(fs::temp_directory_path() / "assay-counts");
  InstructionCount found;
  auto counter = how == "perf" ? ChildCounter::start(ChildCounter::What::instructions, &found.why) : std::nullopt;
  if (how == "perf" && !counter) return found;
  ToolOutput output;
  try {
    output = run_tool(command, [&](const ProcessRun& one) {
      return run(counter ? one : under_valgrind(one, valgrind, folder.path()));
    });
  } catch (const UsageError& error) {
    output.problem = fmt::format("failed: {}", error.what());
  }
  if (counter && !(found.count = counter->count())) found.why = counter_shared;
  if (!counter) found = instructions_in(folder.path());
  if (output.stopped == Stopped::interrupted) throw Error("interrupted", ExitCode::no_data);
  if (!found.count) return found;
  if (!output.problem.empty()) return {{}, fmt::format("the command {}", output.problem)};
  std::vector<std::string> names;
  for (const RecognisedFile& file : output.files)
    for (const ForeignRun& one : file.contents.runs)
      for (std::string& measured : names_of(file.contents, one)) names.push_back(std::move(measured));
  if (names != std::vector{name})
    return {{},
            fmt::format("the command ran {} instead of it", plural(static_cast<std::int64_t>(names.size()), "case"))};
  return found;
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
  if (valgrind.empty()) return {{}, no_valgrind};
  const TemporaryFolder folder(fs::temp_directory_path() / "assay-counts");
  ProcessRun counted;
  counted.process = {.words = {"/bin/sh", "-c", command.line()}, .variables = variables_of_launcher()};
  counted.limit_seconds = command.limit_seconds;
  const FinishedProcess done = run(under_valgrind(std::move(counted), valgrind, folder.path()));
  InstructionCount found = instructions_in(folder.path());
  if (found.count && (!done.ended() || !done.problem.empty()))
    return {{}, fmt::format("under valgrind the command {}", done.ended() ? done.problem : "did not end")};
  return found;
}

void add_instructions(ToolOutput& output, const std::string& name, double count) {
  if (output.files.empty() || output.files.back().contents.runs.empty()) return;
  ForeignFile& file = output.files.back().contents;
  file.runs.back().add(instructions_of(name, count), file.texts);
}

std::vector<std::string> count_cases(ToolOutput& output, const std::string& how,
                                     const std::function<ToolCommand(const std::string& name)>& alone,
                                     const std::function<FinishedProcess(const ProcessRun&)>& run) {
  std::vector<std::string> not_counted;
  for (RecognisedFile& file : output.files)
    for (ForeignRun& one : file.contents.runs)
      for (const std::string& name : names_of(file.contents, one)) {
        const InstructionCount found = count_alone(alone(name), name, how, run);
        if (found.count)
          one.add(instructions_of(name, *found.count), file.contents.texts);
        else
          not_counted.push_back(fmt::format("{}: {}", name, found.why));
      }
  return not_counted;
}

}  // namespace assay::report
