#include "reports/exchange/import.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "harness/core/version.h"
#include "harness/figures/direction.h"
#include "harness/figures/printed.h"
#include "harness/record/content_hash.h"
#include "harness/statistics/statistics.h"
#include "reports/exchange/foreign.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <set>
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
  metric.ci95 = figure.ci95 ? figure.ci95 : median_interval(figure.values);
  return metric;
}

Record record_of(const ForeignFigure& figure, const ForeignContext& about, std::string_view format,
                 const std::string& time) {
  constexpr std::string_view prefix = "imported/";
  Record record;
  record.key = (figure.name.starts_with(prefix) ? "" : std::string(prefix)) + figure.name;
  record.family = "imported";
  record.params = Json::object();
  record.protocol = Json{{"form", "imported"}, {"source", format}, {"hash", format}};
  if (const ForeignWorld* const world = figure.world.get()) {
    record.world_ranks = world->ranks, record.world_nodes = world->nodes;
    record.ranks = world->known;
    record.device = world->device;
  }
  if (record.ranks.empty()) record.ranks.push_back({0, about.machine, "", std::nullopt});
  record.started = time;
  record.conditions = figure.conditions;
  record.labels = figure.labels;
  record.labels["source"] = std::string(format);
  return record;
}

Record record_of(const std::vector<ForeignFigure>& figures, const ForeignContext& about, std::string_view format,
                 const std::string& time) {
  Record record = record_of(figures.front(), about, format, time);
  for (const ForeignFigure& figure : figures) {
    if (!figure.values.empty()) record.metrics.push_back(metric_of(figure));
    if (figure.check) record.checks.push_back(*figure.check);
    if (figure.status > record.status) record.status = figure.status, record.reason = figure.reason;
    record.comparable &= figure.comparable;
    record.labels.insert(figure.labels.begin(), figure.labels.end());
    // The samples of a record are times.
    if (figure.unit == "s" && figure.values.size() > 1 && record.samples.values.empty()) {
      record.samples.values = figure.values;
      record.samples.count = static_cast<std::int64_t>(figure.values.size());
    }
  }
  return record;
}

// What a direction is printed and set for: the metric, or where all metrics are "value", the end of the case's name.
std::string_view direction_name(std::string_view name, std::string_view metric) {
  return metric == "value" ? metric_part(name) : metric;
}

}  // namespace

std::string ForeignInput::text() const {
  constexpr std::size_t max_bytes = 256u << 20;
  std::string all;
  while (more(all))
    if (all.size() > max_bytes) throw UsageError(fmt::format("{}: is longer than 256 MiB", file));
  return all;
}

ForeignInput file_input(const std::string& file) {
  const auto checked = [](auto read) {
    try {
      return read();
    } catch (const Error& error) {
      throw UsageError(fmt::format("import: {}", error.what()));
    }
  };
  const auto parts = checked([&] { return parts_of(file, Pipes::read); });
  return {.file = file, .more = [=](std::string& text) { return checked([&] { return parts(text); }); }};
}

std::span<const ImportFormat> import_formats() {
  static constexpr std::array<ImportFormat, 12> formats{{
      {"gbench", "Google Benchmark's JSON",
       [](const ForeignInput& in) { return read_gbench(in.text(), in.file, in.commit_key); }},
      {"pytest-benchmark", "its JSON", read_pytest_benchmark},
      {"nccl-tests", "its JSON, or the tables that it prints, in a log", read_nccl_tests},
      {"rccl-tests", "the same of AMD's", read_rccl_tests},
      {"superbench", "results-summary.jsonl", read_superbench},
      {"nvbandwidth", "its JSON, or the text that it prints", read_nvbandwidth},
      {"bmf", "Bencher Metric Format", read_bmf},
      {"asv", "airspeed velocity's results of one commit", read_asv},
      {"hyperfine", "its JSON", read_hyperfine},
      {"otava", "a column per series: time[,commit][,branch][,FACT]...,SERIES...", read_otava},
      {"csv", "time,machine,case,metric,unit,better,value[,commit][,status][,reason][,fact.NAME]...", read_csv},
      {"lines", "\"name value unit better\" or \"name failed|error|skipped reason\" on each line",
       [](const ForeignInput& in) { return read_lines(in.text(), in.file); }},
  }};
  return formats;
}

ForeignFile read_named(const ForeignInput& input, const std::vector<std::string>& names, std::optional<Better> better) {
  FigureCollector all;
  const std::string text = input.text();
  for (const std::string& name : names) {
    if (name == "time" || name == "lines")
      throw UsageError(fmt::format("{}: --metric {}: name a figure that the file has", input.file, name));
    const PrintedFigure found = named_figure({text}, name, better, input.file);
    if (!found.remark.empty()) all.remark(found.remark);
    ForeignFigure figure;
    figure.name = found.name, figure.metric = found.metric.empty() ? "value" : found.metric;
    figure.unit = *found.unit, figure.better = *found.better, figure.values = found.values;
    all.add(std::move(figure));
  }
  return all.take();
}

void set_directions(std::vector<ForeignFile>& files, const std::map<std::string, Better>& directions) {
  if (directions.empty()) return;
  std::set<std::string> found, all;
  const auto set = [&](std::string_view name, std::string_view metric, Better& better, bool& guessed) {
    for (const std::string_view one : {direction_name(name, metric), metric, metric_part(name), name}) {
      const auto given = directions.find(std::string(one));
      if (given == directions.end()) continue;
      better = given->second, guessed = false;
      found.insert(given->first);
      return;
    }
    if (all.size() < 1000) all.insert(std::string(direction_name(name, metric)));
  };
  for (ForeignFile& file : files)
    for (ForeignRun& run : file.runs) run.each_direction(file.texts, set);
  for (const auto& [name, better] : directions)
    if (!found.contains(name))
      throw UsageError(fmt::format("import: --better {}: no metric or case is called so; there are {}", one_line(name),
                                   one_line(first_few({all.begin(), all.end()}, 10), 1000)));
}

std::string guessed_directions(std::vector<ForeignFile>& files) {
  std::map<Better, std::set<std::string>> names;
  for (ForeignFile& file : files)
    for (ForeignRun& run : file.runs)
      run.each_direction(file.texts,
                         [&](std::string_view name, std::string_view metric, Better& better, bool& guessed) {
                           if (guessed) names[better].insert(std::string(direction_name(name, metric)));
                         });
  std::string text;
  for (const auto& [better, which] : names)
    text += fmt::format("guessed: {} is better for {}\n", name_of(better),
                        one_line(first_few({which.begin(), which.end()}, 200), 10'000));
  return text;
}

std::vector<std::size_t> in_order(const ForeignFile& file) {
  std::vector<std::size_t> order(file.runs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](std::size_t i) {
    const ForeignContext& about = file.runs[i].about;
    return std::tie(about.time, about.machine, about.commit, about.facts, about.part);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  std::erase_if(order, [&](std::size_t i) { return file.runs[i].empty(); });
  return order;
}

Json import_run(const ForeignFile& file, const ForeignRun& run, std::string_view format,
                const std::filesystem::path& path, const std::function<void(Record)>& add) {
  const ForeignContext& about = run.about;
  const std::string time = about.time.empty() ? modification_time(path) : about.time;
  std::uint64_t hash = hash64(format);
  for (const std::string& part : {time, about.machine, about.commit, std::to_string(about.part)})
    hash = hash64(part, hash);
  std::size_t not_ok = 0;
  run.each_case(file.texts, [&](const std::vector<ForeignFigure>& figures) {
    Record record = record_of(figures, about, format, time);
    for (const ForeignFigure& one : figures) {
      hash = hash64(fmt::format("{} {} {}", one.name, one.metric, fmt::join(one.values, " ")), hash);
      if (one.status != Status::ok) hash = hash64(name_of(one.status), hash64(one.reason, hash));
    }
    not_ok += record.status != Status::ok;
    add(std::move(record));
  });
  Json json = {{"schema", record_schema},
               {"id", fmt::format("{:016x}", hash)},
               {"started", time},
               {"finished", time},
               {"version", build_info().version},
               {"source", {{"format", format}, {"file", path.filename().string()}}},
               {"labels", about.facts},
               {"plan", {{"name", fmt::format("imported from {}", format)}}},
               {"environment", about.environment.is_object() ? about.environment.get() : Json::object()},
               {"not_ok", not_ok}};
  Json& hosts = json["environment"]["hostnames"];
  if (!hosts.is_array()) hosts = about.machine.empty() ? Json::array() : Json::array({about.machine});
  if (!about.commit.empty()) json["git"] = {{"commit", about.commit}, {"dirty", about.facts.contains("dirty")}};
  return json;
}

}  // namespace assay::report
