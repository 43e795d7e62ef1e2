#include "reports/summary/sections.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/runs/groups.h"
#include "reports/model/cells.h"
#include "reports/summary/entry_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report {

namespace {

constexpr std::size_t max_records = 2000;  // rows; beyond this the newest of each case, then none

// Every record if they are few, else the newest of each case.
std::vector<const Entry*> shown_entries(const RunSet& runs) {
  std::vector<const Entry*> entries;
  if (runs.entries().size() <= max_records) {
    for (const Entry& entry : runs.entries()) entries.push_back(&entry);
    return entries;
  }
  for (const MachineRuns& machine : by_machine(runs))
    for (const CaseRuns& one : machine.cases)
      if (entries.size() < max_records) entries.push_back(&one.newest());
  return entries;
}

// A protocol in words. Unknown fields are shown as they are.
std::string words_of(const Json& protocol) {
  if (!protocol.is_object() || protocol.empty()) return "no protocol recorded";
  std::vector<std::string> parts;
  const auto number = [&](const char* name) -> std::optional<double> {
    const auto found = protocol.find(name);
    return found != protocol.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
  };
  for (const auto& [name, value] : protocol.items()) {
    const std::string text = scalar_text(value);
    if (name == "hash" || name == "max_samples") continue;
    if (name == "form") {
      static const std::map<std::string, std::string> forms = {{"repeat", "repeated calls"},
                                                               {"steps", "one sample per step"},
                                                               {"window", "work counted over a window"},
                                                               {"procedure", "the case's own clock"}};
      const auto known = forms.find(text);
      parts.push_back(known == forms.end() ? "form " + text : known->second);
    } else if (name == "data") {
      parts.push_back("inputs " + text);
    } else if (name == "cache") {
      parts.push_back(text == "none" ? "no cache state" : "cache " + text);
    } else if (name == "timer") {
      parts.push_back("timed by " + text);
    } else if (name == "warmup_seconds" && value.is_number()) {
      parts.push_back("warmed up for " + format_seconds(value.get<double>()));
    } else if (name == "min_samples" && value.is_number()) {
      const auto most = number("max_samples");
      parts.push_back("at least " + text + (most && *most > 0 ? fmt::format(" and at most {:.0f}", *most) : "") +
                      " samples");
    } else if (name == "max_seconds" && value.is_number()) {
      parts.push_back("for at most " + format_seconds(value.get<double>()));
    } else if (name == "target_relative_ci" && value.is_number()) {
      parts.push_back("until the interval is within ± " + format_percent(value.get<double>()));
    } else {
      parts.push_back(name + " " + text);
    }
  }
  return joined(parts, "; ");
}

std::string spans_text(const Record& record) {
  std::vector<std::string> parts;
  for (const auto& [name, seconds] : record.spans)
    if (std::isfinite(seconds)) parts.push_back(name + " " + format_seconds(seconds));
  return joined(parts);
}

Cell checks_cell(const Record& record) {
  if (record.checks.empty()) return no_cell();
  Json checks = Json::array();
  std::size_t passed = 0;
  std::vector<std::string> failed;
  for (const Check& check : record.checks) {
    passed += check.passed;
    checks.push_back({{"name", check.name}, {"passed", check.passed}});
    if (!check.passed) failed.push_back(check.name);
  }
  std::string text = fmt::format("{} passed", passed);
  if (!failed.empty()) text += fmt::format("; failed: {}", fmt::join(failed, ", "));
  return {std::move(text), std::move(checks), failed.empty() ? Tone::plain : Tone::bad};
}

// Every metric; the data has the full interval.
Cell figures_cell(const Record& record) {
  std::vector<std::string> parts;
  Json data = Json::array();
  for (const Metric& metric : record.metrics) {
    if (!metric.value) continue;
    parts.push_back(metric.name + " " + figure_text(metric, *metric.value));
    data.push_back({{"metric", metric.name},
                    {"value", *metric.value},
                    {"unit", metric.unit},
                    {"ci95", interval_json(metric.ci95)},
                    {"of_peak", or_null(metric.of_peak)},
                    {"reference", or_null(metric.reference)}});
  }
  if (parts.empty()) return no_cell();
  return {joined(parts, "; "), std::move(data)};
}

// "58: 5.27 ms (5.1 ms – 7.9 ms); 31 disturbed; stopped by time".
Cell samples_cell(const Entry& entry, std::vector<std::string>& problems) {
  const Samples& samples = entry.record->samples;
  const EntrySamples read = samples_of(entry);
  if (!read.problem.empty()) problems.push_back(read.problem);
  const auto numbers = numbers_of(read);
  const auto count = std::max(static_cast<std::int64_t>(read.values.size()), samples.count);
  Json data = {{"count", count}, {"disturbed", samples.disturbed.size()}, {"stopped_by", samples.stopped_by}};
  std::string text = std::to_string(count);
  if (samples.repetitions > 1) text += fmt::format(" of {} calls", samples.repetitions);
  if (numbers) {
    text += fmt::format(": {} ({} – {})", format_quantity(numbers->median, samples.unit),
                        format_quantity(numbers->p5, samples.unit), format_quantity(numbers->p95, samples.unit));
    data.update({{"unit", samples.unit}, {"median", numbers->median}, {"p5", numbers->p5}, {"p95", numbers->p95}});
  }
  if (!samples.disturbed.empty()) text += fmt::format("; {} disturbed", samples.disturbed.size());
  if (samples.throttled) data["throttled"] = samples.throttled->size();
  if (samples.throttled && !samples.throttled->empty())
    text += fmt::format("; {} throttled", samples.throttled->size());
  if (read.unthrottled_median) {
    text += fmt::format(" (median of the others {})", format_quantity(*read.unthrottled_median, samples.unit));
    data["unthrottled_median"] = *read.unthrottled_median;
  }
  if (!samples.stopped_by.empty()) text += "; stopped by " + samples.stopped_by;
  Cell cell{std::move(text), std::move(data)};
  cell.sort = static_cast<double>(count);
  return cell;
}

// Labels that many records share word for word are printed once, to keep a page of a thousand records small.
class SharedLabels {
 public:
  explicit SharedLabels(const std::vector<const Entry*>& entries) {
    std::map<Label, std::size_t> seen;
    for (const Entry* entry : entries)
      for (const auto& [name, value] : entry->record->attributes())
        if (value.size() > shortest) ++seen[{name, value}];
    for (const auto& [label, count] : seen)
      if (count >= fewest) marks_.emplace(label, fmt::format("L{}", marks_.size() + 1));
  }

  std::string text(const Attributes& attributes) const {
    std::vector<std::string> parts;
    for (const auto& [name, value] : attributes) {
      const auto mark = marks_.find({name, value});
      parts.push_back(mark == marks_.end() ? name + ": " + value : name + ": " + mark->second);
    }
    return joined(parts, "; ");
  }

  std::optional<Table> table() const {
    if (marks_.empty()) return std::nullopt;
    Table table{"labels", "Labels of many records", {{"mark"}, {"name", "label"}, {"value"}}};
    std::vector<std::pair<std::size_t, Label>> order;
    for (const auto& [label, mark] : marks_) order.push_back({std::stoul(mark.substr(1)), label});
    std::ranges::sort(order);
    for (const auto& [number, label] : order)
      table.rows.push_back({{fmt::format("L{}", number), nullptr}, {label.first, nullptr}, {label.second, nullptr}});
    return table;
  }

 private:
  using Label = std::pair<std::string, std::string>;
  static constexpr std::size_t shortest = 16, fewest = 4;  // below these a mark does not pay off
  std::map<Label, std::string> marks_;
};

Cell label_cell(const Record& record, const char* name) {
  const auto found = record.attribute(name);
  return found ? Cell{*found, nullptr} : no_cell();
}

}  // namespace

std::vector<Section> method_sections(const RunSet& runs) {
  const std::vector<const Entry*> entries = shown_entries(runs);
  if (entries.empty()) return {};
  std::map<std::string, std::pair<const Record*, int>> protocols;  // by hash: an example, and how many have it
  for (const Entry* entry : entries) {
    auto& [record, count] = protocols[protocol_of(*entry->record)];
    if (!record) record = entry->record;
    ++count;
  }
  std::map<std::string, std::string> names;
  Table shared{"protocols", "Protocols", {{"protocol"}, {"words", "in words"}, right("cases")}};
  for (const auto& [hash, what] : protocols) {
    const std::string name = fmt::format("P{}", names.size() + 1);
    names[hash] = name;
    Json fields = what.first->protocol.is_object() ? what.first->protocol.get() : Json::object();
    shared.rows.push_back({{name, hash}, {words_of(what.first->protocol), std::move(fields)}, count_cell(what.second)});
    shared.anchors.push_back("p-" + name.substr(1));
  }
  const SharedLabels labels(entries);
  const bool several = runs.runs().size() > 1;
  std::vector<std::string> problems;
  Table table{"records",
              "Records",
              {{"key"},
               {"place"},
               {"protocol"},
               {"figures"},
               {"samples", "samples: median (5 % – 95 %)"},
               {"checks"},
               {"spans", "time spent"},
               {"labels"}}};
  for (const Entry* entry : entries) {
    const Record& record = *entry->record;
    const Attributes all = record.attributes();
    const std::string& name = names[protocol_of(record)];
    const std::string key = fmt::format("{} · {}, {}", record.key, record.device, plural(record.world_ranks, "rank"));
    table.rows.push_back({{key, record.key},
                          {several ? entry->place() : fmt::format("line {}", entry->line), entry->place()},
                          {name, nullptr, Tone::plain, "p-" + name.substr(1)},
                          figures_cell(record),
                          samples_cell(*entry, problems),
                          checks_cell(record),
                          {spans_text(record), nullptr},
                          {labels.text(all), all.empty() ? Json() : Json(all)}});
    table.anchors.push_back(entry->anchor());
  }
  Section section{"method", "How was this measured?", {}, false};
  section.blocks.push_back(std::move(shared));
  section.blocks.push_back(std::move(table));
  if (auto shared_labels = labels.table()) section.blocks.push_back(std::move(*shared_labels));
  if (!problems.empty()) section.blocks.push_back(List{"sample-problems", std::move(problems)});
  if (entries.size() < runs.entries().size())
    section.blocks.push_back(
        Text{fmt::format("The newest record of each case, {} of {}.", entries.size(), runs.entries().size())});
  return {std::move(section)};
}

std::vector<Section> normal_sections(const RunSet& runs) {
  constexpr std::size_t max_rows = 500;
  const std::vector<const Entry*> entries = shown_entries(runs);
  std::map<std::pair<std::string, std::string>, int> peaks;  // metric, source
  Table references{"references",
                   "References",
                   {{"key", "case"},
                    {"metric"},
                    right("value"),
                    right("reference", "of reference"),
                    {"source", "the reference's source"}}};
  for (const Entry* entry : entries) {
    const Record& record = *entry->record;
    for (const Metric& metric : record.metrics) {
      if (!metric.value) continue;
      if (metric.of_peak) ++peaks[{metric.name, label_cell(record, "peak").text}];
      if (metric.reference && references.rows.size() < max_rows)
        references.rows.push_back({case_cell(record, entry->anchor()),
                                   {metric.name, nullptr},
                                   figure_cell(&metric),
                                   reference_cell(&metric),
                                   label_cell(record, "reference")});
    }
  }
  if (entries.empty()) return {};
  Section section{"normal", "Is this normal?", {}, false};
  Table sources{
      "peaks", "Peaks that figures are compared with", {{"metric"}, {"peak", "peak and source"}, right("figures")}};
  for (const auto& [what, count] : peaks)
    sources.rows.push_back({{what.first, nullptr},
                            {what.second == "–" ? "not given by the record" : what.second, nullptr},
                            count_cell(count)});
  if (!sources.rows.empty()) section.blocks.push_back(std::move(sources));
  if (!references.rows.empty())
    section.blocks.push_back(std::move(references));
  else
    section.blocks.push_back(
        Text{"These records have no reference figures. Floors state what is expected of a machine, each with its "
             "source: assay check --floors FILE."});
  return {std::move(section)};
}

}  // namespace assay::report
