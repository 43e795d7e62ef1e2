#include "reports/exchange/import.h"

#include "harness/core/utc.h"
#include "harness/core/version.h"
#include "harness/record/content_hash.h"
#include "harness/statistics/statistics.h"
#include "reports/exchange/foreign.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace assay::report {

namespace {

std::string modification_time(const std::filesystem::path& file) {
  struct stat about {};
  return utc_text(::stat(file.c_str(), &about) == 0 ? about.st_mtime : 0);
}

Metric metric_of(const ForeignFigure& figure) {
  Metric metric;
  metric.name = figure.metric;
  metric.unit = figure.unit;
  metric.better = figure.better;
  metric.value = median(figure.values);
  metric.ci95 = median_interval(figure.values);
  return metric;
}

Record record_of(const ForeignFigure& figure, std::string_view format, const std::string& time) {
  Record record;
  record.key = "imported/" + figure.name;
  record.family = "imported";
  record.params = Json::object();
  record.protocol = Json{{"form", "imported"}, {"source", format}, {"hash", format}};
  record.ranks.push_back({0, figure.machine, "", std::nullopt});
  record.started = time;
  record.labels["source"] = std::string(format);
  return record;
}

}  // namespace

std::span<const ImportFormat> import_formats() {
  static constexpr std::array<ImportFormat, 6> formats{{
      {"gbench", "Google Benchmark's JSON", read_gbench},
      {"pytest-benchmark", "its JSON", read_pytest_benchmark},
      {"nccl-tests", "its JSON, or the table that it prints", read_nccl_tests},
      {"superbench", "results-summary.jsonl", read_superbench},
      {"csv", "time,machine,case,metric,unit,better,value[,commit][,status][,reason][,fact.NAME]...", read_csv},
      {"lines", "\"name value unit better\" or \"name failed|error|skipped reason\" on each line", read_lines},
  }};
  return formats;
}

std::vector<ImportedRun> runs_of_figures(std::vector<ForeignFigure> figures, std::string_view format,
                                         const std::filesystem::path& file) {
  const std::string modified = modification_time(file);
  const auto key_of = [](const ForeignFigure& figure) {
    return std::tie(figure.time, figure.machine, figure.commit, figure.facts);
  };
  const auto before = [&](const ForeignFigure* a, const ForeignFigure* b) { return key_of(*a) < key_of(*b); };
  std::map<const ForeignFigure*, std::vector<const ForeignFigure*>, decltype(before)> groups(before);  // by the first
  for (ForeignFigure& figure : figures) {
    if (figure.time.empty()) figure.time = modified;
    groups[&figure].push_back(&figure);
  }
  std::vector<ImportedRun> runs;
  for (const auto& [first, members] : groups) {
    const auto& [time, machine, commit, facts] = key_of(*first);
    ImportedRun run;
    std::map<std::string, std::size_t> records;  // by case
    std::uint64_t hash = hash64(format);
    for (const std::string& part : {time, machine, commit}) hash = hash64(part, hash);
    for (const ForeignFigure* figure : members) {
      const auto [place, fresh] = records.try_emplace(figure->name, run.records.size());
      if (fresh) run.records.push_back(record_of(*figure, format, time));
      Record& record = run.records[place->second];
      if (!figure->values.empty()) record.metrics.push_back(metric_of(*figure));
      if (figure->check) record.checks.push_back(*figure->check);
      if (figure->status > record.status) record.status = figure->status, record.reason = figure->reason;
      record.comparable &= figure->comparable;
      // The samples of a record are times.
      if (figure->unit == "s" && figure->values.size() > 1 && record.samples.values.empty()) {
        record.samples.values = figure->values;
        record.samples.count = static_cast<std::int64_t>(figure->values.size());
      }
      hash = hash64(fmt::format("{} {} {}", figure->name, figure->metric, fmt::join(figure->values, " ")), hash);
      if (figure->status != Status::ok) hash = hash64(name_of(figure->status), hash64(figure->reason, hash));
    }
    run.run = {{"schema", record_schema},
               {"id", fmt::format("{:016x}", hash)},
               {"started", time},
               {"finished", time},
               {"version", build_info().version},
               {"source", {{"format", format}, {"file", file.filename().string()}}},
               {"labels", facts},
               {"plan", {{"name", fmt::format("imported from {}", format)}}},
               {"environment", {{"hostnames", machine.empty() ? Json::array() : Json::array({machine})}}}};
    run.run["not_ok"] = std::count_if(run.records.begin(), run.records.end(),
                                      [](const Record& record) { return record.status != Status::ok; });
    if (!commit.empty()) run.run["git"] = {{"commit", commit}, {"dirty", false}};
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace assay::report
