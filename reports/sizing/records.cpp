#include "reports/sizing/records.h"

#include "harness/runs/figures.h"
#include "harness/runs/machine_kind.h"
#include "harness/runs/why_left_out.h"
#include "reports/scaling/estimate.h"
#include "reports/sizing/here.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report::sizing {

namespace {

std::string setting(const Record& record, const char* name) {
  return record.attribute(name).value_or(param_text(record, name));
}

// A model's name, also if it was given by its file: one of ours, or a config.json in a folder of that name.
std::string model_name(const std::string& word) {
  if (word.find('/') == std::string::npos && !word.ends_with(".json")) return word;
  const std::filesystem::path file(word);
  return file.filename() == "config.json" ? file.parent_path().filename().string() : file.stem().string();
}

std::optional<Estimate> speed_of(const Record& record) {
  if (const Metric* own = find_metric(record, "tokens_per_s")) return scaling::positive(own->value, own->ci95);
  const Metric* all = find_metric(record, "throughput");
  if (!all) all = find_metric(record, "predicted_throughput");  // of a model in slices
  if (!all || (all->unit != "tokens/s" && all->unit != "img/s")) return std::nullopt;
  const auto speed = scaling::positive(all->value, all->ci95);
  return speed ? std::optional(scaling::scaled(*speed, 1.0 / std::max(1, record.world_ranks))) : std::nullopt;
}

struct Group {
  std::map<std::size_t, std::vector<Estimate>> speeds;  // by kind of machine
  std::string place;
};

// From the slowest to the fastest kind of machine; of one kind, its pooled speed.
Estimate range_of(const Group& group) {
  std::optional<Estimate> range;
  for (const auto& [kind, speeds] : group.speeds) {
    const Estimate own = scaling::pooled(speeds);
    if (!range) {
      range = own;
      continue;
    }
    const auto ends = [](const Estimate& one) { return one.interval.value_or(Interval{one.value, one.value}); };
    range->interval = Interval{std::min(ends(*range).low, ends(own).low), std::max(ends(*range).high, ends(own).high)};
    range->value = std::min(range->value, own.value);
  }
  return *range;
}

}  // namespace

Speeds speeds_of(const RunSet& runs, const std::string& model, const std::string& precision, std::int64_t seq,
                 std::span<const HardwareSheet> sheets) {
  const std::vector<std::size_t> kind_of = kind_by_run(machine_kinds(runs.runs()), runs.runs().size());
  std::map<std::pair<std::string, int>, Group> groups;  // by sheet and ranks
  std::set<std::string> unknown;
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    if (model_name(setting(record, "model")) != model) continue;
    if (param_text(record, "precision") != precision || (seq > 0 && setting(record, "seq") != std::to_string(seq)))
      continue;
    const auto speed = speed_of(record);
    if (!speed || why_left_out(record) || record.ranks.empty()) continue;
    const std::string& device = record.ranks.front().device;
    const HardwareSheet* sheet = sheet_of_record(record, sheets);
    if (!sheet) {
      unknown.insert(device);
      continue;
    }
    Group& group = groups[{sheet->name, record.world_ranks}];
    if (group.speeds.empty()) group.place = entry.place();
    group.speeds[kind_of[entry.run_index]].push_back(*speed);
  }
  Speeds found;
  for (const auto& [key, group] : groups)
    found.measured.push_back({.hardware = key.first,
                              .items_per_gpu = range_of(group),
                              .ranks = key.second,
                              .basis = Basis::records,
                              .source = group.speeds.size() == 1
                                            ? group.place
                                            : fmt::format("{} and others, of {} kinds of machines: slowest to fastest",
                                                          group.place, group.speeds.size())});
  found.unknown_devices.assign(unknown.begin(), unknown.end());
  return found;
}

}  // namespace assay::report::sizing
