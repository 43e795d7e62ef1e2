#include "harness/history/store/figures.h"

#include "harness/core/text.h"
#include "harness/history/store/counts.h"
#include "harness/history/store/facts.h"
#include "harness/json/json.h"
#include "harness/record/comparable.h"
#include "harness/record/content_hash.h"
#include "harness/record/disturbed.h"
#include "harness/record/failure.h"
#include "harness/runs/host_runs.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>

namespace assay::store {

namespace {

// "imported/BM_Sort/1024" is of the family BM_Sort: names of benchmarks begin with what they share.
std::string family_of(const Record& record) {
  const std::string prefix = record.family + "/";
  if (record.family != "imported" || !record.key.starts_with(prefix)) return record.family;
  return record.key.substr(prefix.size(), record.key.find('/', prefix.size()) - prefix.size());
}

// A label overrides what was detected: the user knows better.
std::string labelled(const Json& run, const std::string& label, const char* pointer) {
  const std::string given = text_member(run, "/labels/" + label);
  return given.empty() ? text_member(run, pointer) : given;
}

// Runs of schema 1 have no id.
std::string name_of_run(const RunData& run) {
  std::string name = text_member(run.run, "/id");
  if (name.empty()) name = fmt::format("content-{:016x}", run.content.value_or(hash64(run.run.dump())));
  return name;
}

std::string why_broken(const Record& record) {
  const std::string why = failure_text(record);
  const std::string_view status = name_of(record.status);
  return why.empty() ? std::string(status) : fmt::format("{}: {}", status, one_line(why));
}

// Half the interval's width, as a share of the figure.
float within_of(const Metric& metric) {
  if (!metric.ci95 || *metric.value == 0 || !std::isfinite(metric.ci95->low) || !std::isfinite(metric.ci95->high) ||
      metric.ci95->low > metric.ci95->high)
    return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>((metric.ci95->high - metric.ci95->low) / 2 / *metric.value);
}

std::string lines_of(const Attributes& attributes) {
  std::string lines;
  for (const auto& [name, value] : attributes) lines += fmt::format("{}{}={}", lines.empty() ? "" : "\n", name, value);
  return lines;
}

// Adds the metrics of records to the figures of a run; several values of one series are averaged.
class Collector {
 public:
  explicit Collector(RunFigures& run) : run_(run) {}

  // Returns whether the record has a figure.
  bool add(const Record& record, const std::string& title) {
    std::set<std::string> seen;
    for (const Metric& metric : record.metrics) {
      if (!metric.value || !std::isfinite(*metric.value) || *metric.value < 0) continue;
      const bool is_kept = *metric.value > 0 || is_count(metric.name, metric.unit);
      if (is_kept && seen.insert(metric.name).second) add(record, metric, title);
    }
    return !seen.empty();
  }

  void finish() {
    for (std::size_t i = 0; i < run_.figures.size(); ++i) {
      run_.figures[i].log /= counts_[i];
      run_.figures[i].within = static_cast<float>(std::sqrt(squares_[i]) / counts_[i]);
    }
  }

 private:
  void add(const Record& record, const Metric& metric, const std::string& title) {
    SeriesIdentity identity{.machine = run_.machine,
                            .key = record.key,
                            .device = record.device,
                            .ranks = record.world_ranks,
                            .nodes = record.world_nodes,
                            .conditions = lines_of(record.conditions),
                            .metric = metric.name,
                            .unit = metric.unit,
                            .better = metric.better,
                            .protocol = protocol_of(record),
                            .family = family_of(record)};
    const auto [place, fresh] = places_.try_emplace(text_of(identity), run_.figures.size());
    if (fresh) {
      std::string choices = record.choices.empty() ? "{}" : text_of(record.choices);
      run_.figures.push_back({std::move(identity), place->first, title, 0, 0, std::move(choices), false});
      counts_.push_back(0);
      squares_.push_back(0);
    }
    const std::size_t i = place->second;
    const double within = within_of(metric);
    run_.figures[i].log += *metric.value > 0 ? std::log(*metric.value) : log_of_zero;
    run_.figures[i].disturbed = run_.figures[i].disturbed || disturbed(record);
    counts_[i] += 1;
    squares_[i] += within * within;
  }

  RunFigures& run_;
  std::unordered_map<std::string, std::size_t> places_;  // by identity
  std::vector<double> counts_, squares_;
};

}  // namespace

std::string text_of(const SeriesIdentity& identity) {
  std::string text;
  for (const std::string* part : {&identity.machine, &identity.key, &identity.device, &identity.conditions,
                                  &identity.metric, &identity.unit, &identity.protocol, &identity.family})
    text.append(std::to_string(part->size())).append(1, ':').append(*part);
  return text + fmt::format("{},{},{}", identity.ranks, identity.nodes, identity.better == Better::higher ? "+" : "-");
}

RunFigures figures_of(const RunData& run, const AddOptions& options) {
  RunFigures made;
  made.started = options.at ? *options.at : text_member(run.run, "/started");
  if (!history::night_of(made.started))
    throw UsageError(fmt::format("{}: it does not say when it was started (\"2026-01-31T12:00:00Z\"): give --at TIME",
                                 run.dir.string()));
  made.name = name_of_run(run);
  made.facts = facts_of(run, options);
  if (ran_on_each_host(run)) made.name += "/" + made.facts["hostnames"];
  made.machine = machine_name(run, made.facts, options.machine_by_class);
  if (!options.machine_by_class) made.hardware = hardware_of(made.facts);  // in a pool it is another each time
  made.commit = labelled(run.run, "commit", "/git/commit");
  made.branch = options.branch.empty() ? text_member(run.run, "/labels/branch") : options.branch;
  made.records = static_cast<std::int64_t>(run.records.size());
  made.finished = !text_member(run.run, "/finished").empty();
  Collector collector(made);
  std::set<std::string> held;
  for (const Record* record : run.last_attempts()) {
    if (record->injected()) {
      ++made.left_out;
      continue;
    }
    if (record->status == Status::failed || record->status == Status::error)
      made.broken.emplace_back(record->key, why_broken(*record));
    if (record->status != Status::ok) continue;
    held.insert(record->key);
    if (record->metrics.empty() && !record->checks.empty()) continue;  // a check without figures, such as a return code
    if (!record->comparable || !collector.add(*record, options.title ? options.title(*record) : record->key))
      ++made.left_out;
  }
  collector.finish();
  made.held.assign(held.begin(), held.end());
  return made;
}

std::int64_t digest_of(const RunFigures& run) {
  std::uint64_t hash = hash64(run.name);
  for (const std::string* part : {&run.started, &run.machine, &run.hardware, &run.commit, &run.branch})
    hash = hash64(*part, hash);
  hash = hash64(text_of(run.facts), hash);
  for (const Figure& figure : run.figures) {
    hash = hash64(figure.name, hash);
    hash = hash64(fmt::format("{} {} {}", std::bit_cast<std::uint64_t>(figure.log),
                              std::bit_cast<std::uint32_t>(figure.within), figure.disturbed),
                  hash);
    hash = hash64(figure.choices, hash);
  }
  for (const std::string& key : run.held) hash = hash64(key, hash);
  for (const auto& [key, why] : run.broken) hash = hash64(why, hash64(key, hash));
  return std::bit_cast<std::int64_t>(hash);
}

}  // namespace assay::store
