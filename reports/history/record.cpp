#include "reports/history/record.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/history/store/facts.h"
#include "harness/json/json.h"
#include "harness/process/run.h"
#include "harness/record/content_hash.h"
#include "reports/exchange/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <utility>

namespace assay::history {

namespace {

// What a program prints; empty if it fails.
std::string printed_by(const std::string& command) {
  constexpr double seconds = 60;
  ProcessRun run;
  run.process = {.words = {"/bin/sh", "-c", command}, .variables = inherited_variables()};
  run.limit_seconds = seconds;
  const FinishedProcess done = run_process(run);
  return done.ended() && done.problem.empty() ? done.output : std::string();
}

// What a file does not say of where and when it was measured. What this machine knows of itself counts for more than
// what the file says of it.
void fill_in(ForeignContext& about, const std::string& started, const Place& place) {
  if (about.time.empty()) about.time = started;
  if (about.commit.empty()) about.commit = place.checkout.commit;
  about.machine = place.host;
  if (!about.facts.contains("branch") && !place.checkout.branch.empty()) about.facts["branch"] = place.checkout.branch;
  if (place.checkout.dirty) about.facts["dirty"] = "true";
  if (!place.suite.empty()) about.facts["suite"] = place.suite;
  about.facts.insert(place.facts.begin(), place.facts.end());
  Json environment = about.environment.is_object() ? about.environment.get() : Json::object();
  for (const auto& [name, value] : place.environment.items()) {
    if (Json& known = environment[name]; known.is_object() && value.is_object())
      known.update(value);
    else
      known = value;
  }
  about.environment = std::move(environment);
}

// The tool that a run of the store came from; empty if it does not say.
std::string suite_of(const store::Contents& contents, const store::Run& run) {
  return store::fact_of(contents.facts[static_cast<std::size_t>(run.facts)], "suite");
}

struct EarlierCases {
  std::set<std::string> keys;
  std::string protocol;
};

// Those of the last run of a machine and suite that had any.
EarlierCases cases_before(const store::Contents& contents, const std::string& machine, const std::string& suite,
                          const std::string& branch) {
  std::map<std::int64_t, EarlierCases> of_run;
  for (const store::Run& run : contents.runs)
    if (run.machine == machine && suite_of(contents, run) == suite && (run.branch == branch || run.branch.empty()))
      of_run[run.number];
  for (const store::Series& series : contents.series)
    for (const store::Point& point : series.points)
      if (const auto found = of_run.find(point.run); found != of_run.end() && !point.weekly)
        found->second.keys.insert(series.identity.key);
  for (const store::Run& run : contents.runs)
    if (const auto found = of_run.find(run.number); found != of_run.end())
      for (const auto& [key, why] : run.broken) found->second.keys.insert(key);
  for (auto run = contents.runs.rbegin(); run != contents.runs.rend(); ++run)
    if (const auto found = of_run.find(run->number); found != of_run.end() && !found->second.keys.empty())
      return found->second;
  return {};
}

// A command that is run twice within a second is two runs, even of equal figures; a file that tells when they were
// measured is the same run however often it is printed, unless the user says that it is another night.
RunData run_of(const ForeignFile& file, const ForeignRun& figures, std::string_view format, const std::string& name,
               const report::ToolOutput& output, const store::AddOptions& options) {
  RunData run;
  run.run =
      report::import_run(file, figures, format, name, [&](Record record) { run.records.push_back(std::move(record)); });
  std::string when;
  if (figures.about.time != output.started)
    when = options.at.value_or("");
  else if (output.moment != 0)
    when = std::to_string(output.moment);
  if (!when.empty())
    run.run["id"] = fmt::format("{:016x}", hash64(fmt::format("{} {}", text_member(run.run, "/id"), when)));
  for (std::size_t i = 0; i < run.records.size(); ++i) run.lines.push_back(static_cast<int>(i) + 1);
  run.dir = name;
  return run;
}

void add_failures(RunData& run, const std::vector<RunData>& all, const store::Contents& earlier,
                  const store::AddOptions& options, const Place& place, const std::string& problem) {
  const store::Facts facts = store::facts_of(run, options);
  const std::string branch = options.branch.empty() ? store::fact_of(facts, "branch") : options.branch;
  EarlierCases missing =
      cases_before(earlier, store::machine_name(run, facts, options.machine_by_class), place.suite, branch);
  for (const RunData& one : all)
    for (const Record& record : one.records) missing.keys.erase(record.key);
  for (const std::string& key : missing.keys) {
    Record record;
    record.key = key;
    record.family = "imported";
    record.params = Json::object();
    record.protocol = Json{{"form", "imported"}, {"source", "record"}, {"hash", "record"}};
    record.ranks.push_back({0, place.host, "", std::nullopt});
    record.started = text_member(run.run, "/started");
    record.status = Status::failed;
    record.reason = fmt::format("the command {} before it", problem);
    run.records.push_back(std::move(record));
    run.lines.push_back(static_cast<int>(run.records.size()));
  }
  if (const std::size_t count = missing.keys.size(); count > 0)
    run.run["not_ok"] = number_member(run.run, "/not_ok").value_or(0) + static_cast<double>(count);
}

}  // namespace

std::map<std::string, std::string> tool_versions(const std::string& command) {
  std::map<std::string, std::string> facts;
  const char* const compiler = std::getenv("CXX");
  if (std::string line =
          first_line(printed_by(fmt::format("{} --version 2>/dev/null", compiler && *compiler ? compiler : "c++")));
      !line.empty())
    facts["compiler"] = one_line(line);
  std::string python;
  std::istringstream words(command);
  for (std::string word; words >> word && python.empty();) {
    const std::string name = word.substr(word.find_last_of("/'\"") + 1);
    if (name.starts_with("python")) python = word;
    if (name == "pytest" || name == "asv" || name.starts_with("py.test")) python = "python3";
  }
  if (python.empty() || python.find_first_of("'\"$`;&|<>()") != python.npos) return facts;
  std::istringstream packages(
      printed_by(python + " -m pip list --format=freeze --disable-pip-version-check --no-input 2>/dev/null"));
  for (std::string line; std::getline(packages, line);)
    if (const std::size_t at = line.find("=="); at != line.npos && at > 0)
      facts["packages." + line.substr(0, at)] = line.substr(at + 2);
  if (std::string version = first_line(printed_by(python + " --version 2>&1")); !version.empty())
    facts["python"] = one_line(version);
  return facts;
}

std::vector<RunData> recorded_runs(report::ToolOutput output, const Place& place, const store::Contents& earlier,
                                   const store::AddOptions& options) {
  std::vector<RunData> runs;
  for (std::size_t i = 0; i < output.files.size(); ++i) {
    ForeignFile& file = output.files[i].contents;
    for (ForeignRun& run : file.runs) fill_in(run.about, output.started, place);
    for (const std::size_t which : report::in_order(file))
      runs.push_back(run_of(file, file.runs[which], output.files[i].format, output.names[i], output, options));
  }
  if (output.problem.empty()) return runs;
  if (runs.empty()) {
    ForeignRun none;
    fill_in(none.about, output.started, place);
    runs.push_back(run_of({}, none, "record", "output", output, options));
  }
  add_failures(runs.back(), runs, earlier, options, place, output.problem);
  if (runs.back().records.empty()) runs.pop_back();
  return runs;
}

}  // namespace assay::history
