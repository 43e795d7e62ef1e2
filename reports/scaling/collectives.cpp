#include "reports/scaling/collectives.h"

#include "harness/runs/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <tuple>

namespace assay::report::scaling {

namespace {

constexpr std::array<std::string_view, 1> size_parameter{"bytes"};

// The size used, else the size requested; absent unless above 0.
std::optional<double> bytes_of(const Record& record) {
  for (const std::string& text : {record.attribute("bytes_used").value_or(""), param_text(record, "bytes")}) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) && value > 0) return value;
  }
  return std::nullopt;
}

std::string call_title(const Record& record) {
  const std::string op = param_text(record, "op"), dtype = param_text(record, "dtype");
  std::string title = op.empty() ? record.key : op;
  if (!dtype.empty()) title += " " + dtype;
  if (param_text(record, "inplace") == "true") title += ", in place";
  if (const std::string batching = param_text(record, "batching"); !batching.empty() && batching != "batched")
    title += ", " + batching;
  if (const std::string variant = collective_variant(record); !variant.empty()) title += ", " + variant;
  return title;
}

struct Call {
  Entry entry;
  double bytes = 0;
  Estimate time;
};

struct CallGroup {
  std::map<int, std::map<double, std::vector<Call>>> worlds;
  std::size_t records = 0;
  Entry first;
};

// Sizes at the world size that has the most of them.
std::size_t max_sizes(const CallGroup& group) {
  std::size_t max = 0;
  for (const auto& [ranks, sizes] : group.worlds) max = std::max(max, sizes.size());
  return max;
}

CollectiveSeries series_of(const CallGroup& group, const Likeness& likeness, std::string title) {
  CollectiveSeries series{std::move(title), param_text(*group.first.record, "op"), likeness, {}};
  for (const auto& [ranks, sizes] : group.worlds) {
    MessageLine line{ranks, {}};
    for (const auto& [bytes, calls] : sizes) {
      MessagePoint point{bytes, {}, {}};
      std::vector<Estimate> times;
      for (const Call& call : calls) {
        times.push_back(call.time);
        point.entries.push_back(call.entry);
      }
      point.time = pooled(times);
      line.points.push_back(std::move(point));
    }
    series.lines.push_back(std::move(line));
  }
  return series;
}

}  // namespace

CollectiveSet find_collectives(const RunSet& runs, const Likenesses& likenesses) {
  ExclusionList excluded;
  std::map<std::string, std::map<Likeness, CallGroup>> configurations;
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    if (record.family != "collective" || param_text(record, "op") == "pairwise") continue;  // measures single links
    const auto leave = [&](const std::string& reason) {
      excluded.add(call_title(record), reason, entry, record.status != Status::ok || record.world_ranks == 1);
    };
    const auto bytes = bytes_of(record);
    const auto time = time_of(entry, "latency");
    if (const auto reason = unfit(record))
      leave(*reason);
    else if (record.world_ranks == 1)
      leave("one rank: a copy, no communication");
    else if (!bytes)
      leave("its message size is unknown");
    else if (!time)
      leave("it has no latency in seconds above 0");
    else {
      CallGroup& group = configurations[configuration(record, size_parameter)][likenesses.of(entry)];
      if (group.records++ == 0) group.first = entry;
      group.worlds[record.world_ranks][*bytes].push_back({entry, *bytes, *time});
    }
  }

  CollectiveSet found;
  for (const auto& [name, alike] : configurations) {
    std::vector<Likeness> all;
    for (const auto& [likeness, group] : alike) all.push_back(likeness);
    // The group that others are compared with: the most sizes, then the most records.
    const auto main = std::ranges::max_element(alike, [](const auto& a, const auto& b) {
      return std::pair(max_sizes(a.second), a.second.records) < std::pair(max_sizes(b.second), b.second.records);
    });
    for (const auto& [likeness, group] : alike) {
      const std::string title = call_title(*group.first.record);
      found.series.push_back(series_of(group, likeness, title + distinction(likeness, all)));
      if (likeness == main->first) continue;
      const std::string reason = difference(group.first, likeness, main->second.first, main->first);
      for (const auto& [ranks, sizes] : group.worlds)
        for (const auto& [bytes, calls] : sizes)
          for (const Call& call : calls) excluded.add(title, reason + ": fitted separately", call.entry);
    }
  }
  std::ranges::stable_sort(found.series, [](const CollectiveSeries& a, const CollectiveSeries& b) {
    return std::tie(a.title, a.likeness) < std::tie(b.title, b.likeness);
  });
  found.excluded = excluded.list();
  return found;
}

}  // namespace assay::report::scaling
