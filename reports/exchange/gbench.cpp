// The JSON of Google Benchmark (its docs/tools.md), which compare.py, github-action-benchmark and Bencher read.
#include "harness/json/json.h"
#include "harness/record/failure.h"
#include "harness/runs/machine.h"
#include "harness/statistics/statistics.h"
#include "reports/exchange/formats.h"
#include "reports/render/escape.h"
#include "reports/render/render.h"
#include "reports/summary/entry_samples.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::report {

namespace {

constexpr std::size_t max_repetitions = 100;

Json entry_json(const Record& record, double seconds, Json more) {
  constexpr double nanoseconds = 1e9;
  const std::string name = printable(record.key);
  Json json = {{"name", name},
               {"run_name", name},
               {"threads", record.world_ranks},
               {"iterations", record.samples.repetitions},
               {"real_time", seconds * nanoseconds},
               {"cpu_time", seconds * nanoseconds},
               {"time_unit", "ns"}};
  json.update(more);
  return json;
}

void add_aggregate(Json& all, const Record& record, const char* name, double seconds) {
  Json json =
      entry_json(record, seconds, {{"run_type", "aggregate"}, {"aggregate_name", name}, {"aggregate_unit", "time"}});
  json["name"] = printable(record.key) + "_" + name;
  all.push_back(std::move(json));
}

// Evenly spaced, if there are more than Google Benchmark's users would repeat.
std::vector<double> some_of(const std::vector<double>& values) {
  if (values.size() <= max_repetitions) return values;
  std::vector<double> some;
  for (std::size_t i = 0; i < max_repetitions; ++i) some.push_back(values[i * values.size() / max_repetitions]);
  return some;
}

// The time of a case that has no samples; null if it has none.
const Metric* time_of(const Record& record) {
  for (const Metric& metric : record.metrics)
    if (metric.unit == "s" && metric.better == Better::lower && metric.value && std::isfinite(*metric.value))
      return &metric;
  return nullptr;
}

// As Google Benchmark writes what SkipWithError() and SkipWithMessage() ended.
void add_not_ok(Json& all, const Record& record) {
  Json json = entry_json(record, 0, {{"run_type", "iteration"}, {"repetitions", 1}, {"repetition_index", 0}});
  json["iterations"] = 0;
  const bool skipped = record.status == Status::skipped;
  json[skipped ? "skipped" : "error_occurred"] = true;
  json[skipped ? "skip_message" : "error_message"] = printable(failure_text(record));
  all.push_back(std::move(json));
}

void add_case(Json& all, const Entry& entry) {
  const Record& record = *entry.record;
  if (record.status != Status::ok) return add_not_ok(all, record);
  std::vector<double> every;
  if (record.samples.unit == "s") every = samples_of(entry).values;
  if (every.empty())
    if (const Metric* const time = time_of(record)) every = {*time->value};
  if (every.empty()) return;
  const std::vector<double> values = some_of(every);
  for (std::size_t i = 0; i < values.size(); ++i) {
    Json json = entry_json(record, values[i],
                           {{"run_type", "iteration"}, {"repetitions", values.size()}, {"repetition_index", i}});
    all.push_back(std::move(json));
  }
  add_aggregate(all, record, "mean", mean(every));
  add_aggregate(all, record, "median", median(every));
  if (every.size() > 1)
    add_aggregate(all, record, "stddev", std::sqrt(squared_deviations(every) / static_cast<double>(every.size() - 1)));
}

}  // namespace

std::vector<std::string> cases_without_time(const RunSet& runs) {
  std::vector<std::string> cases;
  each_newest(runs, [&](const MachineRuns&, const Entry& entry) {
    const Record& record = *entry.record;
    const bool samples = record.samples.unit == "s" && record.samples.count > 0;
    if (record.status == Status::ok && !samples && !time_of(record)) cases.push_back(record.key);
  });
  return cases;
}

std::string gbench_text(const RunSet& runs) {
  Json context = Json::object(), benchmarks = Json::array();
  if (!runs.runs().empty()) {
    const RunData& newest = runs.runs().back();
    const RunMachine machine = machine_of(newest);
    context = {{"date", printable(text_member(newest.run, "/started"))},
               {"host_name", machine.hosts.empty() ? "" : printable(machine.hosts.front())},
               {"executable", "assay"},
               {"num_cpus", machine.cores.value_or(0)},
               {"mhz_per_cpu", 0},
               {"cpu_scaling_enabled", false},
               {"caches", Json::array()},
               {"load_avg", Json::array()},
               {"library_build_type", "release"}};
  }
  each_newest(runs, [&](const MachineRuns&, const Entry& entry) { add_case(benchmarks, entry); });
  return dump_document({{"context", std::move(context)}, {"benchmarks", std::move(benchmarks)}});
}

}  // namespace assay::report
