#include "reports/acceptance/document.h"

#include "harness/core/text.h"
#include "harness/core/words.h"
#include "harness/fitness/floors/words.h"
#include "harness/json/members.h"
#include "harness/runs/figures.h"
#include "harness/runs/machine.h"
#include "reports/model/fitness.h"
#include "reports/model/words.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

namespace assay::report {

using namespace fitness;

namespace {

constexpr std::size_t max_culprits = 5;    // listed per floor
constexpr std::size_t max_in_json = 1000;  // records per floor, worst first; all are counted

constexpr FitnessWords shown_words = {"PASS", "NOT JUDGED", "INCONCLUSIVE", "FAIL"};

// The record that decides the verdict: the worst one judged; null if the floor failed for lack of records.
const Judgement* decisive(const FloorResult& result) {
  const Outcome wanted = result.verdict == Fitness::pass     ? Outcome::pass
                         : result.verdict == Fitness::unsure ? Outcome::inconclusive
                                                             : Outcome::fail;
  for (const Judgement& each : result.records)
    if (each.outcome == wanted) return &each;
  for (const Judgement& each : result.records)
    if (each.outcome == Outcome::unusable) return &each;
  return nullptr;
}

std::size_t judged_records(const FloorResult& result) {
  return static_cast<std::size_t>(std::ranges::count_if(result.records, [](const Judgement& each) {
    return each.outcome == Outcome::fail || each.outcome == Outcome::inconclusive || each.outcome == Outcome::pass;
  }));
}

std::string line_of(const FloorResult& result) {
  const Floor& floor = *result.floor;
  const Judgement* worst = decisive(result);
  if (!worst || !worst->value) return fmt::format("{}  {}", name_of(result.verdict, shown_words), floor_title(floor));
  const std::string filters = filters_text(floor);
  const std::size_t judged = judged_records(result);
  return fmt::format("{}  {}{} {} {}  {}{}", name_of(result.verdict, shown_words), one_line(floor.key, 400),
                     filters.empty() ? "" : fmt::format(" ({})", filters), one_line(floor.metric, 80),
                     comparison_text(floor, *worst), place_text(*worst),
                     judged > 1 ? fmt::format("  (worst of {})", judged) : "");
}

// "gemm/...: 600 TFLOP/s < 700 TFLOP/s; host b; run/records.jsonl line 3".
std::string culprit_line(const Floor& floor, const Judgement& each) {
  std::vector<std::string> parts = {one_line(each.entry.record->key, 400)};
  if (each.value) parts.back() += " " + comparison_text(floor, each);
  if (!each.culprit.empty()) parts.push_back(each.culprit);
  if (!each.reason.empty()) parts.push_back(each.reason);
  parts.push_back(place_text(each));
  return joined(parts, "; ");
}

std::vector<std::string> details_of(const FloorResult& result) {
  const Floor& floor = *result.floor;
  const Judgement* worst = decisive(result);
  std::vector<std::string> lines;
  if (result.verdict != Fitness::pass) {
    const bool of_record = worst && (worst->value || worst->outcome == Outcome::unusable);
    std::string line = result.reason;
    if (of_record && !worst->culprit.empty()) line += "; " + worst->culprit;
    if (of_record && one_line(worst->entry.record->key, 400) != one_line(floor.key, 400))
      line += "; " + one_line(worst->entry.record->key, 400);
    if (of_record && !worst->value) line += "; " + place_text(*worst);
    lines.push_back(std::move(line));
  } else if (worst && !worst->range) {
    lines.push_back(result.reason);
  }
  const bool judged = judged_records(result) > 0;
  std::size_t more = 0, refused = 0;
  const Judgement* first_refused = nullptr;
  for (const Judgement& each : result.records) {
    if (each.outcome == Outcome::refused && refused++ == 0) first_refused = &each;
    if (each.outcome == Outcome::pass || each.outcome == Outcome::refused || &each == worst) continue;
    if (lines.size() <= max_culprits)
      lines.push_back(culprit_line(floor, each));
    else
      ++more;
  }
  if (more > 0) lines.push_back(fmt::format("and {} more", more));
  // If nothing was judged, the reason mentions them already.
  if (judged && refused > 0)
    lines.push_back(fmt::format("not counted: {}; {} ({})", plural(refused, "record"), first_refused->reason,
                                place_text(*first_refused)));
  if (result.of_other_unit > 0)
    lines.push_back(fmt::format("not counted: {} whose {} is not in {}", plural(result.of_other_unit, "record"),
                                one_line(floor.metric, 80), one_line(floor.unit, 40)));
  if (result.verdict == Fitness::fail || result.verdict == Fitness::unsure)
    lines.push_back("source of the limit: " + one_line(floor.source, 400));
  return lines;
}

std::string counts_text(const CheckResult& result) {
  return fmt::format("passed: {} · failed: {} · inconclusive: {} · not judged: {}", result.count(Fitness::pass),
                     result.count(Fitness::fail), result.count(Fitness::unsure), result.count(Fitness::unknown));
}

Json record_json(const Judgement& each) {
  const Record& record = *each.entry.record;
  Json json;
  json["run"] = each.entry.run->dir.filename().string();
  json["line"] = each.entry.line;
  json["pointer"] = or_null(each.pointer);
  json["key"] = record.key;
  json["device"] = record.device;
  json["ranks"] = record.world_ranks;
  json["nodes"] = record.world_nodes;
  json["hosts"] = record.identity().hosts;
  json["culprit"] = each.culprit;
  json["verdict"] = name_of(each.outcome);
  json["reason"] = each.reason;
  json["value"] = json_of(each.value);
  json["ci95"] = interval_json(each.range);
  json["limit"] = json_of(each.limit);
  if (each.median) json["fleet_median"] = *each.median;
  if (each.members > 0) json["fleet_members"] = each.members;
  return json;
}

Json result_json(const FloorResult& result) {
  Json json = floor_json(*result.floor);
  json["verdict"] = name_of(result.verdict, floor_words);
  json["reason"] = result.reason;
  if (result.of_other_unit > 0) json["of_other_unit"] = result.of_other_unit;
  json["counts"] = Json::object();
  for (const Outcome outcome :
       {Outcome::pass, Outcome::fail, Outcome::inconclusive, Outcome::unusable, Outcome::refused})
    json["counts"][std::string(name_of(outcome))] = std::ranges::count(result.records, outcome, &Judgement::outcome);
  json["records"] = Json::array();
  for (std::size_t i = 0; i < std::min(result.records.size(), max_in_json); ++i)
    json["records"].push_back(record_json(result.records[i]));
  return json;
}

std::vector<std::string> hosts_of(const RunSet& runs) {
  std::set<std::string> hosts;
  for (const RunData& run : runs.runs())
    for (const std::string& host : machine_of(run).hosts) hosts.insert(host);
  for (const Entry& entry : runs.entries())
    for (const RankResult& rank : entry.record->ranks)
      if (!rank.host.empty()) hosts.insert(rank.host);
  return {hosts.begin(), hosts.end()};
}

// The part of a time that every JUnit reader accepts: 2026-01-31T12:00:00.
std::string timestamp_of(const RunSet& runs) {
  constexpr std::string_view form = "dddd-dd-ddTdd:dd:dd";
  for (const RunData& run : runs.runs()) {
    const std::string started = text_member(run.run, "/started").substr(0, form.size());
    bool fits = started.size() == form.size();
    for (std::size_t i = 0; fits && i < form.size(); ++i)
      fits = form[i] == 'd' ? std::isdigit(static_cast<unsigned char>(started[i])) != 0 : started[i] == form[i];
    if (fits) return started;
  }
  return {};
}

}  // namespace

Document check_document(const CheckResult& result) {
  Document document;
  document.title = "Assay check";
  document.headline =
      fmt::format("floors {}: {} against {} of {}", one_line(result.floors->name), result.results.size(),
                  plural(result.runs->entries().size(), "record"), plural(result.runs->runs().size(), "run"));
  Section floors{"floors", "", {}};
  for (const FloorResult& each : result.results) {
    floors.blocks.push_back(Text{line_of(each), tone_of(each.verdict)});
    if (auto lines = details_of(each); !lines.empty()) floors.blocks.push_back(List{"details", std::move(lines)});
  }
  document.sections.push_back(std::move(floors));
  if (!result.notes.empty()) document.sections.push_back({"left-out", "Left out", {List{"left-out", result.notes}}});
  document.verdict = counts_text(result);
  document.tone = verdict_tone(result.fitness());
  return document;
}

Json check_json(const CheckResult& result) {
  Json json;
  json["schema"] = 1;
  json["floors_file"] = result.floors->name;
  json["verdict"] = name_of(result.fitness(), verdict_words);
  json["counts"] = {{"pass", result.count(Fitness::pass)},
                    {"fail", result.count(Fitness::fail)},
                    {"inconclusive", result.count(Fitness::unsure)},
                    {"not_judged", result.count(Fitness::unknown)}};
  json["floors"] = Json::array();
  for (const FloorResult& each : result.results) json["floors"].push_back(result_json(each));
  json["notes"] = result.notes;
  return json;
}

TestSuite check_suite(const CheckResult& result) {
  TestSuite suite;
  suite.name = "assay check " + result.floors->name;
  suite.timestamp = timestamp_of(*result.runs);
  const std::vector<std::string> hosts = hosts_of(*result.runs);
  suite.hostname = hosts.size() > 8 ? fmt::format("{} hosts", hosts.size()) : joined(hosts, ",");
  for (const FloorResult& each : result.results) {
    TestCase test;
    test.classname = result.floors->name;
    test.name = floor_title(*each.floor);
    test.message = each.reason;
    test.outcome = junit_outcome(each.verdict);
    if (test.outcome == TestCase::Outcome::skipped)
      test.message = fmt::format("{}: {}", name_of(each.verdict, floor_words), each.reason);
    test.output = line_of(each);
    test.detail = joined(details_of(each), "\n");
    if (const Judgement* worst = decisive(each); worst && worst->entry.record->seconds > 0)
      test.seconds = worst->entry.record->seconds;
    suite.cases.push_back(std::move(test));
  }
  return suite;
}

VerdictFiles verdict_files(const CheckResult& result) {
  return {exit_code(result.fitness()),
          render_terminal(check_document(result), {.colour = false, .width = unlimited_columns}),
          dump_document(check_json(result)), render_junit(check_suite(result))};
}

}  // namespace assay::report
