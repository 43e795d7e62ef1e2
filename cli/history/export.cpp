// assay history export: all figures for other programs.
#include "cli/history/history.h"
#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/history/series/tracked.h"
#include "harness/history/store/store.h"
#include "harness/json/json.h"
#include "harness/runs/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <unordered_map>

namespace assay::cli {

namespace {

struct HistoryExportOptions {
  std::string store, format, out = "-";
  std::string series, machine;  // patterns; empty: all
};

// A stream into a file that replaces another when it is whole, or to stdout.
class ExportFile {
 public:
  explicit ExportFile(const std::string& path) {
    try {
      if (path != "-") file_.emplace(path);
    } catch (const Error& error) {
      throw UsageError(fmt::format("history export: {}", error.what()));
    }
  }

  void line(std::string text) {
    text += '\n';
    file_ ? file_->write(text) : show_text(text);
  }
  void finish() {
    if (file_) file_->finish();
  }

 private:
  std::optional<NewFile> file_;
};

std::unordered_map<std::int64_t, const store::Run*> runs_by_number(const store::Contents& contents) {
  std::unordered_map<std::int64_t, const store::Run*> runs;
  for (const store::Run& run : contents.runs) runs[run.number] = &run;
  return runs;
}

// As `assay import csv` reads it.
void write_csv(const store::Contents& contents, ExportFile& out) {
  const auto runs = runs_by_number(contents);
  out.line("time,machine,case,metric,unit,better,value,low,high,commit,device,ranks,fact.branch");
  for (const store::Series& series : contents.series)
    for (const store::Point& point : series.points) {
      const store::Run& run = *runs.at(point.run);
      const store::Identity& identity = series.identity;
      const double value = std::exp(point.log), within = point.within;
      const auto bound = [&](double sign) {
        return std::isnan(within) ? "" : fmt::format("{}", value * (1 + sign * within));
      };
      out.line(fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}", run.started, csv_field(identity.machine),
                           csv_field(identity.key), csv_field(identity.metric), csv_field(identity.unit),
                           word_of(identity.better), value, bound(-1), bound(+1), csv_field(run.commit),
                           csv_field(identity.device), identity.ranks, csv_field(run.branch)));
    }
}

Json run_json(const store::Run& run, const store::Contents& contents) {
  Json broken = Json::array();
  for (const auto& [key, reason] : run.broken) broken.push_back(key + ": " + reason);
  return {{"kind", "run"},
          {"id", run.id},
          {"started", run.started},
          {"machine", run.machine},
          {"hardware", run.hardware},
          {"commit", run.commit},
          {"branch", run.branch},
          {"facts", contents.facts[static_cast<std::size_t>(run.facts)]},
          {"broken", std::move(broken)},
          {"held", run.held}};
}

Json series_json(const store::Series& series, std::size_t number) {
  const store::Identity& identity = series.identity;
  return {{"kind", "series"},
          {"series", number},
          {"name", series.name},
          {"machine", identity.machine},
          {"key", identity.key},
          {"device", identity.device},
          {"ranks", identity.ranks},
          {"nodes", identity.nodes},
          {"conditions", identity.conditions},
          {"metric", identity.metric},
          {"unit", identity.unit},
          {"better", word_of(identity.better)},
          {"protocol", identity.protocol},
          {"family", identity.family}};
}

constexpr const char* decision_words[] = {"ack", "mute", "unmute", "expect"};

// Everything: a line for each run, series, figure, decision and event.
void write_jsonl(const store::Contents& contents, ExportFile& out) {
  const auto runs = runs_by_number(contents);
  for (const store::Run& run : contents.runs) out.line(dump_line(run_json(run, contents)));
  for (std::size_t i = 0; i < contents.series.size(); ++i) {
    const store::Series& series = contents.series[i];
    out.line(dump_line(series_json(series, i + 1)));
    for (const store::Point& point : series.points)
      out.line(dump_line({{"kind", "point"},
                          {"series", i + 1},
                          {"run", runs.at(point.run)->id},
                          {"value", std::exp(point.log)},
                          {"within", std::isnan(point.within) ? Json() : Json(point.within)},
                          {"choices", contents.facts[static_cast<std::size_t>(point.choices)]},
                          {"disturbed", point.disturbed},
                          {"weekly", point.weekly}}));
  }
  for (const store::Decision& one : contents.decisions)
    out.line(dump_line({{"kind", "decision"},
                        {"id", one.uuid},
                        {"decision", decision_words[static_cast<int>(one.kind)]},
                        {"target", one.target},
                        {"reason", one.reason},
                        {"by", one.by},
                        {"at", one.at},
                        {"until", one.until ? Json(*one.until) : Json()}}));
  for (const store::StoredEvent& one : contents.events)
    out.line(dump_line({{"kind", "event"}, {"id", one.id}, {"state", one.state}, {"document", one.document}}));
}

// Apache Otava's CSV: a row per run, a column per series. It takes no empty cell, so only runs with all figures count.
void write_otava(const store::Contents& contents, ExportFile& out) {
  if (contents.series.empty()) throw Error("history export: no series matches", ExitCode::no_data);
  std::unordered_map<std::int64_t, std::map<std::size_t, double>> rows;
  std::map<std::string, int> names;
  std::string header = "time,commit";
  for (std::size_t i = 0; i < contents.series.size(); ++i) {
    const store::Series& series = contents.series[i];
    if (series.identity.machine != contents.series.front().identity.machine)
      throw UsageError(fmt::format("history export: otava takes one machine: --machine \"{}\", for example",
                                   contents.series.front().identity.machine));
    const int same = ++names[series.name];
    header += "," + csv_field(same == 1 ? series.name : fmt::format("{} ({})", series.name, same));
    for (const store::Point& point : series.points) rows[point.run][i] = std::exp(point.log);
  }
  out.line(header);
  std::size_t written = 0, left_out = 0;
  for (const store::Run& run : contents.runs) {
    const auto found = rows.find(run.number);
    if (found == rows.end()) continue;
    if (found->second.size() < contents.series.size()) {
      ++left_out;
      continue;
    }
    std::string row = run.started + "," + csv_field(run.commit);
    for (const auto& [series, value] : found->second) row += fmt::format(",{}", value);
    out.line(row);
    ++written;
  }
  if (left_out > 0)
    say("assay: history export: left out {} without all of the {} series: --series PATTERN picks some\n",
        plural(static_cast<std::int64_t>(left_out), "run"), contents.series.size());
  if (written == 0) throw Error("history export: no run has all of these series", ExitCode::no_data);
}

// As of `history report --series`, by the machine's name, the name or the key.
bool is_named(const store::Series& series, const std::string& pattern) {
  const std::string names[] = {history::series_name(series), series.name, series.identity.key};
  return std::any_of(std::begin(names), std::end(names),
                     [&](const std::string& name) { return history::matches(pattern, name); });
}

ExitCode run_history_export(const HistoryExportOptions& options) {
  store::Contents contents = store::Store::open_existing(store_path(options.store)).read_all();
  std::erase_if(contents.series, [&](const store::Series& series) {
    return !is_named(series, options.series) || !history::matches(options.machine, series.identity.machine);
  });
  // Not in the order in which they were added, so that equal contents give equal files.
  std::sort(contents.series.begin(), contents.series.end(),
            [](const store::Series& a, const store::Series& b) { return a.identity < b.identity; });
  ExportFile out(options.out);
  if (options.format == "csv")
    write_csv(contents, out);
  else if (options.format == "jsonl")
    write_jsonl(contents, out);
  else
    write_otava(contents, out);
  out.finish();
  return ExitCode::ok;
}

}  // namespace

Command history_export_command(CLI::App& history) {
  auto options = std::make_shared<HistoryExportOptions>();
  CLI::App* app = history.add_subcommand("export", "Writes all figures for other programs");
  app->add_option("--format", options->format,
                  "csv: a row per figure, as `assay import csv` reads it; jsonl: everything; otava: a row per run")
      ->required()
      ->check(CLI::IsMember({"csv", "jsonl", "otava"}));
  app->add_option("--out", options->out, "FILE (- for stdout, the default)");
  app->add_option("--series", options->series,
                  "Only series whose names or keys contain PATTERN, or match it (* and ?)");
  app->add_option("--machine", options->machine, "Only machines whose names contain PATTERN, or match it");
  add_store_option(*app, options->store);
  return {app, [options] { return run_history_export(*options); }};
}

}  // namespace assay::cli
