#include "reports/exchange/counting.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/text.h"

#include <fmt/format.h>
#include <sys/personality.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace assay::report {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_log_bytes = std::size_t{16} << 20;

Count instructions(double count) { return {"instructions", "instructions", count}; }

// The numbers of "==7== Total:     1,234 bytes in 5 blocks" behind its label; empty for lines without the label.
std::vector<double> numbers_behind(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  std::vector<double> numbers;
  if (at == line.npos || !line.starts_with("==")) return numbers;
  bool inside = false;
  for (const char c : line.substr(at + label.size())) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      if (!std::exchange(inside, true)) numbers.push_back(0);
      numbers.back() = 10 * numbers.back() + (c - '0');
    } else if (c != ',') {
      inside = false;
    }
  }
  return numbers;
}

// What stands behind the label on its line of valgrind's log.
std::string_view text_behind(std::string_view log, std::string_view label) {
  const std::size_t at = log.find(label);
  if (at == log.npos) return {};
  log.remove_prefix(at + label.size());
  return log.substr(0, log.find('\n'));
}

// The process of valgrind's log, whose lines begin with "==7== ".
std::string_view process_of(std::string_view log) {
  return log.starts_with("==") ? log.substr(2, log.find("==", 2) - 2) : std::string_view();
}

// Whether it is the log of the shell in which Assay starts every command. Its work depends on the environment.
bool is_of_own_shell(std::string_view log, const std::set<std::string_view>& processes) {
  return text_behind(log, "== Command: ").starts_with("/bin/sh -c ") &&
         !processes.contains(text_behind(log, "== Parent PID: "));
}

// While it lives, what this thread starts has no random addresses, if the kernel allows that.
class FixedAddresses {
 public:
  FixedAddresses() : own_(::personality(ask)) { ::personality(own_ | ADDR_NO_RANDOMIZE); }
  FixedAddresses(const FixedAddresses&) = delete;
  ~FixedAddresses() { ::personality(own_); }

 private:
  static constexpr unsigned long ask = 0xffffffff;
  int own_;
};

// Sums what the processes of a command did on the heap.
struct Heap {
  double bytes = 0, blocks = 0, peak = 0;
  bool found = false;

  void read(std::string_view line) {
    if (const auto total = numbers_behind(line, "== Total: "); total.size() == 2)
      bytes += total[0], blocks += total[1], found = true;
    if (const auto most = numbers_behind(line, "== At t-gmax: "); most.size() == 2) peak = std::max(peak, most[0]);
  }
  std::vector<Count> counts() const {
    if (!found) return {};
    return {{"allocations", "allocations", blocks}, {"allocated_bytes", "B", bytes}, {"peak_bytes", "B", peak}};
  }
};

// A process under valgrind, whose logs go to the folder.
ProcessRun under_valgrind(ProcessRun run, CountedBy by, const std::string& valgrind, const fs::path& folder) {
  std::vector<std::string> words = {valgrind, "--trace-children=yes", "--log-file=" + (folder / "%p").string()};
  if (by == CountedBy::heap) {
    words.insert(words.end(), {"--tool=dhat", "--dhat-out-file=/dev/null"});
    run.process.variables.try_emplace("PYTHONMALLOC", "malloc");  // Python's own pools hide its objects
  } else {
    words.insert(words.end(), {"--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"});
  }
  run.process.words.insert(run.process.words.begin(), words.begin(), words.end());
  return run;
}

Counts counts_in(const fs::path& folder, CountedBy by) {
  std::vector<std::string> logs;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    logs.push_back(read_whole(entry.path(), max_log_bytes));
  return counts_in_logs(by, logs);
}

void add_to(ForeignRun& run, const std::string& name, const std::vector<Count>& counts, TextPool& texts) {
  for (const Count& one : counts)
    run.add(ForeignFigure{name, one.metric, one.unit, Better::lower, false, {one.value}}, texts);
}

// The cases that have a figure.
std::vector<std::string> names_of(const ForeignFile& file, const ForeignRun& run) {
  std::vector<std::string> names;
  run.each_case(file.texts, [&](const std::vector<ForeignFigure>& figures) {
    if (figures.front().status == Status::ok) names.push_back(figures.front().name);
  });
  return names;
}

// Runs a command that measures this case and no other, and counts what it does.
Counts count_alone(const ToolCommand& command, const std::string& name, CountedBy by,
                   const std::function<FinishedProcess(const ProcessRun&)>& run) {
  const std::string valgrind = by == CountedBy::perf ? std::string() : find_program("valgrind");
  Counts found;
  auto counter =
      by == CountedBy::perf ? ChildCounter::start(ChildCounter::What::instructions, &found.why) : std::nullopt;
  if (by == CountedBy::perf && !counter) return found;
  if (!counter && valgrind.empty()) return {{}, "there is no valgrind on the PATH"};
  const TemporaryFolder folder(fs::temp_directory_path() / "assay-counts");
  ToolOutput output;
  try {
    output = run_tool(command, [&](const ProcessRun& one) {
      return run_without_chance(counter ? one : under_valgrind(one, by, valgrind, folder.path()), run);
    });
  } catch (const UsageError& error) {
    output.problem = fmt::format("failed: {}", error.what());
  }
  found = counter ? instructions_of(*counter) : counts_in(folder.path(), by);
  if (output.stopped == Stopped::interrupted) throw Error("interrupted", ExitCode::no_data);
  if (found.counts.empty()) return found;
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

const char* counted_things(CountedBy by) { return by == CountedBy::heap ? "allocations" : "instructions"; }

Counts instructions_of(const ChildCounter& counter) {
  if (const auto count = counter.count()) return {{instructions(*count)}};
  return {{}, "the counter was shared, and saw only a part"};
}

FinishedProcess run_without_chance(ProcessRun process, const std::function<FinishedProcess(const ProcessRun&)>& run) {
  process.process.variables.try_emplace("PYTHONHASHSEED", "0");
  const FixedAddresses fixed;
  return run(process);
}

Counts counts_in_logs(CountedBy by, const std::vector<std::string>& logs) {
  std::optional<double> executed;
  Heap heap;
  std::set<std::string_view> processes;
  for (const std::string& log : logs) processes.insert(process_of(log));
  bool programs = false;
  for (const std::string& log : logs) {
    if (log.find("unhandled instruction bytes") != log.npos || log.find("Unrecognised instruction") != log.npos)
      return {{},
              "valgrind does not know an instruction of this program (AVX-512, most often): count a build for an older "
              "CPU, or with --counts perf"};
    if (is_of_own_shell(log, processes)) continue;
    programs = true;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      if (const auto refs = numbers_behind(line, "== I "); line.find("refs:") != line.npos && refs.size() == 1)
        executed = executed.value_or(0) + refs[0];
      heap.read(line);
    }
  }
  Counts found;
  if (by == CountedBy::heap) found.counts = heap.counts();
  if (by == CountedBy::valgrind && executed) found.counts = {instructions(*executed)};
  if (found.counts.empty())
    found.why = !logs.empty() && !programs ? "the command starts no program"
                                           : fmt::format("valgrind printed no count of {}", counted_things(by));
  return found;
}

Counts count_under_valgrind(const ToolCommand& command, CountedBy by,
                            const std::function<FinishedProcess(const ProcessRun&)>& run) {
  const std::string valgrind = find_program("valgrind");
  if (valgrind.empty()) return {{}, "there is no valgrind on the PATH"};
  const TemporaryFolder folder(fs::temp_directory_path() / "assay-counts");
  ProcessRun counted;
  counted.process = {.words = {"/bin/sh", "-c", command.line()}, .variables = variables_of_launcher()};
  counted.limit_seconds = command.limit_seconds;
  const FinishedProcess done = run_without_chance(under_valgrind(std::move(counted), by, valgrind, folder.path()), run);
  const Counts found = counts_in(folder.path(), by);
  if (!found.counts.empty() && (!done.ended() || !done.problem.empty()))
    return {{}, fmt::format("under valgrind the command {}", done.ended() ? done.problem : "did not end")};
  return found;
}

void add_counts(ToolOutput& output, const std::string& name, const std::vector<Count>& counts) {
  if (output.files.empty() || output.files.back().contents.runs.empty()) return;
  ForeignFile& file = output.files.back().contents;
  add_to(file.runs.back(), name, counts, file.texts);
}

std::vector<std::string> count_cases(ToolOutput& output, CountedBy by,
                                     const std::function<ToolCommand(const std::string& name)>& alone,
                                     const std::function<FinishedProcess(const ProcessRun&)>& run) {
  std::vector<std::string> not_counted;
  for (RecognisedFile& file : output.files)
    for (ForeignRun& one : file.contents.runs)
      for (const std::string& name : names_of(file.contents, one)) {
        const Counts found = count_alone(alone(name), name, by, run);
        if (found.counts.empty())
          not_counted.push_back(fmt::format("{}: {}", name, found.why));
        else
          add_to(one, name, found.counts, file.contents.texts);
      }
  return not_counted;
}

}  // namespace assay::report
