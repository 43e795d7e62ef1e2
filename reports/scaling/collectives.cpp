#include "reports/scaling/collectives.h"

#include "reports/data/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <system_error>
#include <tuple>

namespace assay::report::scaling {

namespace {

constexpr std::array<std::string_view, 1> size_parameter{"bytes"};

// The size that was used, else the one that was asked for; absent unless above 0.
std::optional<double> bytes_of(const Record& record) {
  for (const std::string& text : {record.attribute("bytes_used").value_or(""), param_text(record, "bytes")}) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) && value > 0) return value;
  }
  return std::nullopt;
}

std::string title_of(const Record& record) {
  const std::string op = param_text(record, "op"), dtype = param_text(record, "dtype");
  std::string title = op.empty() ? record.key : op;
  if (!dtype.empty()) title += " " + dtype;
  if (param_text(record, "inplace") == "true") title += ", in place";
  if (const std::string batching = param_text(record, "batching"); !batching.empty() && batching != "batched")
    title += ", " + batching;
  return title;
}

struct Candidate {
  Entry entry;
  double bytes = 0;
  Estimate time;
};

struct CollectiveGroup {
  std::map<int, std::map<double, std::vector<Candidate>>> worlds;
  std::size_t records = 0;
  Entry first;
};

// How much a fit can draw on: sizes at the world size that has the most.
std::size_t max_sizes(const CollectiveGroup& group) {
  std::size_t most = 0;
  for (const auto& [ranks, sizes] : group.worlds) most = std::max(most, sizes.size());
  return most;
}

CollectiveSeries series_of(const CollectiveGroup& group, const Likeness& likeness, std::string title) {
  CollectiveSeries series{std::move(title), param_text(*group.first.record, "op"), likeness, {}};
  for (const auto& [ranks, sizes] : group.worlds) {
    MessageLine line{ranks, {}};
    for (const auto& [bytes, candidates] : sizes) {
      MessagePoint point{bytes, {}, {}};
      std::vector<Estimate> times;
      for (const Candidate& candidate : candidates) {
        times.push_back(candidate.time);
        point.entries.push_back(candidate.entry);
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
  ApartList apart;
  std::map<std::string, std::map<Likeness, CollectiveGroup>> configurations;
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    if (record.family != "collective" || param_text(record, "op") == "pairwise") continue;  // links, one by one
    const auto leave = [&](const std::string& reason) {
      apart.add(title_of(record), reason, entry, record.status != Status::ok || record.world_ranks == 1);
    };
    const auto bytes = bytes_of(record);
    const auto time = time_of(entry, "latency");
    if (const auto reason = unfit(record))
      leave(*reason);
    else if (record.world_ranks == 1)
      leave("one rank: a copy, no communication");
    else if (!bytes)
      leave("its message size is not said");
    else if (!time)
      leave("it has no latency in seconds above 0");
    else {
      CollectiveGroup& group = configurations[configuration(record, size_parameter)][likenesses.of(entry)];
      if (group.records++ == 0) group.first = entry;
      group.worlds[record.world_ranks][*bytes].push_back({entry, *bytes, *time});
    }
  }

  CollectiveSet found;
  for (const auto& [name, alike] : configurations) {
    std::vector<Likeness> all;
    for (const auto& [likeness, group] : alike) all.push_back(likeness);
    // What the others are told apart from: the most sizes, then the most records.
    const auto main = std::max_element(alike.begin(), alike.end(), [](const auto& a, const auto& b) {
      return std::pair(max_sizes(a.second), a.second.records) < std::pair(max_sizes(b.second), b.second.records);
    });
    for (const auto& [likeness, group] : alike) {
      const std::string title = title_of(*group.first.record);
      found.series.push_back(series_of(group, likeness, title + distinction(likeness, all)));
      if (likeness == main->first) continue;
      const std::string reason = difference(group.first, likeness, main->second.first, main->first);
      for (const auto& [ranks, sizes] : group.worlds)
        for (const auto& [bytes, candidates] : sizes)
          for (const Candidate& candidate : candidates)
            apart.add(title, reason + ": a line of its own", candidate.entry);
    }
  }
  std::stable_sort(found.series.begin(), found.series.end(), [](const CollectiveSeries& a, const CollectiveSeries& b) {
    return std::tie(a.title, a.likeness) < std::tie(b.title, b.likeness);
  });
  found.apart = apart.take();
  return found;
}

}  // namespace assay::report::scaling
