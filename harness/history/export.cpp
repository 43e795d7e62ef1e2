#include "harness/history/export.h"

#include "harness/core/error.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/history/series/tracked.h"
#include "harness/history/store/counts.h"
#include "harness/json/members.h"
#include "harness/runs/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

namespace assay::history {

namespace {

using Line = std::function<void(std::string)>;

std::unordered_map<std::int64_t, const store::Run*> runs_by_number(const store::Contents& contents) {
  std::unordered_map<std::int64_t, const store::Run*> runs;
  for (const store::Run& run : contents.runs) runs[run.number] = &run;
  return runs;
}

void write_csv(const store::Contents& contents, const Line& line) {
  const auto runs = runs_by_number(contents);
  line("time,machine,case,metric,unit,better,value,low,high,commit,device,ranks,fact.branch");
  for (const store::Series& series : contents.series)
    for (const store::Point& point : series.points) {
      const store::Run& run = *runs.at(point.run);
      const store::SeriesIdentity& id = series.identity;
      const double value = store::figure_of(id, point.log), within = point.within;
      const auto bound = [&](double sign) {
        return std::isnan(within) ? "" : fmt::format("{}", value * (1 + sign * within));
      };
      line(fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_cell(run.started), csv_cell(id.machine),
                       csv_cell(id.key), csv_cell(id.metric), csv_cell(id.unit), word_of(id.better), value, bound(-1),
                       bound(+1), csv_cell(run.commit), csv_cell(id.device), id.ranks, csv_cell(run.branch)));
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

void write_jsonl(const store::Contents& contents, const Line& line) {
  const auto runs = runs_by_number(contents);
  const auto show = [&](const Json& json) { line(dump_line(json)); };
  const auto show_members = [&](Json head, const auto& one) {
    head.update(json_of(one));
    show(head);
  };
  for (const store::Run& run : contents.runs) show(run_json(run, contents));
  for (std::size_t i = 0; i < contents.series.size(); ++i) {
    const store::Series& series = contents.series[i];
    show_members({{"kind", "series"}, {"series", i + 1}, {"name", series.name}}, series.identity);
    for (const store::Point& point : series.points)
      show({{"kind", "point"},
            {"series", i + 1},
            {"run", runs.at(point.run)->id},
            {"value", store::figure_of(series.identity, point.log)},
            {"within", std::isnan(point.within) ? Json() : Json(point.within)},
            {"choices", contents.facts[static_cast<std::size_t>(point.choices)]},
            {"disturbed", point.disturbed},
            {"weekly", point.weekly}});
  }
  for (const store::Decision& one : contents.decisions) show_members({{"kind", "decision"}}, one);
  for (const store::StoredEvent& one : contents.events) show_members({{"kind", "event"}}, one);
}

void write_otava(const store::Contents& contents, const Line& line) {
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
    header += "," + csv_cell(same == 1 ? series.name : fmt::format("{} ({})", series.name, same));
    for (const store::Point& point : series.points) rows[point.run][i] = store::figure_of(series.identity, point.log);
  }
  line(header);
  std::size_t written = 0, left_out = 0;
  for (const store::Run& run : contents.runs) {
    const auto found = rows.find(run.number);
    if (found == rows.end()) continue;
    if (found->second.size() < contents.series.size()) {
      ++left_out;
      continue;
    }
    std::string row = csv_cell(run.started) + "," + csv_cell(run.commit);
    for (const auto& [series, value] : found->second) row += fmt::format(",{}", value);
    line(row);
    ++written;
  }
  if (left_out > 0)
    say("assay: history export: left out {} without all of the {} series: --series PATTERN picks some\n",
        plural(left_out, "run"), contents.series.size());
  if (written == 0) throw Error("history export: no run has all of these series", ExitCode::no_data);
}

// Whether the pattern matches the name with the machine, the name, or the key.
bool is_named(const store::Series& series, const std::string& pattern) {
  const std::string names[] = {series_name(series), series.name, series.identity.key};
  return std::ranges::any_of(names, [&](const std::string& name) { return matches(pattern, name); });
}

}  // namespace

void export_history(store::Contents contents, const ExportRequest& request, const Line& write) {
  std::erase_if(contents.series, [&](const store::Series& series) {
    return !is_named(series, request.series) || !matches(request.machine, series.identity.machine);
  });
  // Not in the order in which they were added.
  std::ranges::sort(contents.series,
                    [](const store::Series& a, const store::Series& b) { return a.identity < b.identity; });
  constexpr void (*writers[])(const store::Contents&, const Line&) = {write_csv, write_jsonl, write_otava};
  writers[static_cast<int>(request.format)](contents, write);
}

}  // namespace assay::history
