#include "reports/answers/add_reference.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/json/json.h"
#include "harness/json/masked.h"
#include "harness/record/run_dir.h"
#include "reports/answers/answers.h"
#include "reports/references/references.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace assay::report {

namespace fs = std::filesystem;

namespace {

void refuse_unless_fit(const RunSet& runs, const fs::path& dir) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("reference add: {}: {}", dir.string(), why));
  };
  const bool measured = std::ranges::any_of(runs.entries(), [](const Entry& entry) {
    return entry.record->status == Status::ok && entry.record->comparable;
  });
  if (!runs.runs().front().run.value("finished", Json()).is_string()) refuse("the run has not finished");
  if (!measured) refuse("no case was measured that can be compared");
  for (const Answer& answer : {right_answer(runs), steady_answer(runs)})
    if (answer.tone == Tone::bad || answer.tone == Tone::warn) refuse(fmt::format("{}: {}", answer.title, answer.text));
}

// A line of records.jsonl without names of hosts.
std::string without_hosts(Record record) {
  for (RankResult& rank : record.ranks) rank.host.clear();
  if (record.outside_cpu) record.outside_cpu->host.clear();
  record.log.clear();
  return dump_line(masked(record.to_json())) + "\n";
}

}  // namespace

fs::path add_reference(const fs::path& dir, const std::string& name) {
  constexpr std::size_t max_name = 64;
  const bool fits = !name.empty() && name.size() <= max_name && name.front() != '-' &&
                    name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
  if (!fits)
    throw UsageError(fmt::format("reference add: --name {}: use lower-case letters, digits and '-'", in_quotes(name)));
  const fs::path target = reference_folder() / name;
  std::error_code none;
  if (fs::exists(target, none))
    throw UsageError(fmt::format("reference add: --name {}: {} exists already", name, target.string()));
  std::vector<RunData> read;
  read.push_back(read_run(dir));
  const RunSet runs(std::move(read));
  const RunData& run = runs.runs().front();
  if (!run.problems.empty()) throw UsageError(fmt::format("reference add: {}: {}", dir.string(), run.problems.front()));
  refuse_unless_fit(runs, dir);

  Json about = run.run;
  for (const char* member : {"argv", "hosts"}) about.erase(member);
  if (about.contains("environment") && about["environment"].is_object()) about["environment"].erase("hostnames");
  std::string lines;
  for (const Record& record : run.final_records()) lines += without_hosts(record);
  fs::create_directories(target);
  if (fs::is_directory(dir / "series", none)) fs::copy(dir / "series", target / "series", fs::copy_options::recursive);
  replace_file(target / "records.jsonl", lines);
  replace_file(target / "run.json", dump_document(about));
  return target;
}

}  // namespace assay::report
