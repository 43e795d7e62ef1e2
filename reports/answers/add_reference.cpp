#include "reports/answers/add_reference.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/json/json.h"
#include "harness/record/run_dir.h"
#include "reports/answers/answers.h"
#include "reports/references/references.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <system_error>
#include <tuple>
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

bool holds_hosts(const std::string& member) {
  static const std::set<std::string> members = {"host", "hosts", "hostname", "hostnames", "lost"};
  return members.contains(member);
}

// The names of hosts that the members of a file hold, the longest first.
using Names = std::set<std::string, decltype([](const std::string& a, const std::string& b) {
                         return a.size() != b.size() ? a.size() > b.size() : a < b;
                       })>;

void add_names(const Json& json, bool of_hosts, Names& names) {
  if (of_hosts && json.is_string()) {
    const auto name = json.get<std::string>();
    for (const std::string& one : {name, name.substr(0, name.find('.'))})
      if (!one.empty() && one != "localhost") names.insert(one);
  }
  if (json.is_object())
    for (const auto& [member, value] : json.items()) add_names(value, holds_hosts(member), names);
  if (json.is_array())
    for (const Json& value : json) add_names(value, of_hosts, names);
}

std::string without(std::string text, const Names& names) {
  const auto in_word = [&](std::size_t at) {
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '-' || text[at] == '_');
  };
  for (const std::string& name : names)
    for (std::size_t at = 0; (at = text.find(name, at)) != text.npos;) {
      const bool whole = (at == 0 || !in_word(at - 1)) && !in_word(at + name.size());
      if (whole) text.replace(at, name.size(), "host");
      at += whole ? 4 : 1;
    }
  return text;
}

// Nothing of what a case or its figures are called changes, even if a host is called so.
void remove_names(Json& json, const Names& names) {
  static const std::set<std::string> kept = {"key",     "family",  "params",   "device",  "conditions",
                                             "choices", "metrics", "protocol", "samples", "plan"};
  if (json.is_string()) json = without(json.get<std::string>(), names);
  if (json.is_array())
    for (Json& value : json) remove_names(value, names);
  if (!json.is_object()) return;
  for (auto& [member, value] : json.items()) {
    if (holds_hosts(member) && value.is_string()) value = "";
    if (holds_hosts(member) && value.is_array()) value = Json::array();
    if (!kept.contains(member)) remove_names(value, names);
  }
}

// A record with its samples, but without names of hosts and the user's labels, which may be such.
Record without_hosts(const RunData& run, const Record& record, const Names& names, JsonPool& pool) {
  Json json = record.to_json();
  remove_names(json, names);
  if (const auto own = run.run.find("labels"); own != run.run.end() && own->is_object() && json.contains("labels"))
    for (const auto& [label, value] : own->items()) json["labels"].erase(label);
  Record made = Record::from_text(dump_line(json), pool);
  made.log.clear();
  std::tie(made.samples.values, made.samples.at) = timed_samples(run, record);
  made.samples.series.reset();
  return made;
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
  if (!run.problems.empty())
    throw UsageError(fmt::format("reference add: {}: {}{}", dir.string(), one_line(run.problems.front()),
                                 and_more(run.problems.size(), 1)));
  refuse_unless_fit(runs, dir);

  Json about = run.run;
  Names names;
  add_names(about, false, names);
  for (const Record& record : run.final_records()) add_names(record.to_json(), false, names);
  for (const char* member : {"argv", "hosts", "labels"}) about.erase(member);
  if (about.contains("plan") && about["plan"].is_object()) about["plan"].erase("labels");
  if (about.contains("environment") && about["environment"].is_object()) about["environment"].erase("hostnames");
  remove_names(about, names);
  // Made beside its place, so that nothing stays if it cannot be made whole.
  std::error_code failed;
  fs::create_directories(target.parent_path(), failed);
  const TemporaryFolder folder(target.parent_path() / ("." + name));
  const fs::path made = folder.path() / name;
  write_run(made, [&](const auto& add) {
    JsonPool pool;
    for (const Record& record : run.final_records()) add(without_hosts(run, record, names, pool));
    return about;
  });
  sync_file_system(made);
  fs::rename(made, target, failed);
  if (failed) throw Error(fmt::format("reference add: cannot make {}: {}", target.string(), failed.message()));
  return target;
}

}  // namespace assay::report
