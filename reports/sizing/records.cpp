#include "reports/sizing/records.h"

#include "reports/data/figures.h"
#include "reports/data/why_left_out.h"
#include "reports/scaling/estimate.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace assay::report::sizing {

namespace {

std::string setting(const Record& record, const char* name) {
  return record.attribute(name).value_or(param_text(record, name));
}

std::optional<Estimate> speed_of(const Record& record) {
  if (const Metric* own = find_metric(record, "tokens_per_s")) return scaling::positive(own->value, own->ci95);
  const Metric* all = find_metric(record, "throughput");
  if (!all || (all->unit != "tokens/s" && all->unit != "img/s")) return std::nullopt;
  const auto speed = scaling::positive(all->value, all->ci95);
  return speed ? std::optional(scaling::scaled(*speed, 1.0 / std::max(1, record.world_ranks))) : std::nullopt;
}

}  // namespace

Speeds speeds_of(const RunSet& runs, const std::vector<std::string>& models, const std::string& precision,
                 std::int64_t seq, std::span<const HardwareSheet> sheets) {
  struct Group {
    std::vector<Estimate> speeds;
    std::string place;
  };
  std::map<std::pair<std::string, int>, Group> groups;  // by sheet and ranks
  std::set<std::string> unknown;
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    const auto is_model = [&](const std::string& name) {
      return std::find(models.begin(), models.end(), name) != models.end();
    };
    if (!is_model(setting(record, "model")) && !is_model(param_text(record, "model"))) continue;
    if (param_text(record, "precision") != precision || (seq > 0 && setting(record, "seq") != std::to_string(seq)))
      continue;
    const auto speed = speed_of(record);
    if (!speed || why_left_out(record) || record.ranks.empty()) continue;
    const std::string& device = record.ranks.front().device;
    const HardwareSheet* sheet = find_hardware(sheets, device);
    if (!sheet) {
      unknown.insert(device);
      continue;
    }
    Group& group = groups[{sheet->name, record.world_ranks}];
    if (group.speeds.empty()) group.place = entry.place();
    group.speeds.push_back(*speed);
  }
  Speeds found;
  for (const auto& [key, group] : groups)
    found.measured.push_back({.hardware = key.first,
                              .items_per_gpu = scaling::pooled(group.speeds),
                              .ranks = key.second,
                              .basis = Basis::records,
                              .source = group.place});
  found.unknown_devices.assign(unknown.begin(), unknown.end());
  return found;
}

}  // namespace assay::report::sizing
