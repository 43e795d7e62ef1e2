#include "reports/scaling/series.h"

#include "harness/core/text.h"
#include "harness/json/json.h"
#include "harness/runs/figures.h"
#include "harness/runs/step_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <tuple>

namespace assay::report::scaling {

namespace {

constexpr std::array<std::string_view, 2> batch_parameters{"micro_batch", "accumulate"};

std::optional<Mode> mode_of(const Record& record) {
  if (record.family == "collective") return std::nullopt;
  const std::string scaling = param_text(record, "scaling");
  if (scaling != "strong" && scaling != "weak") return std::nullopt;
  return scaling == "strong" || param_text(record, "mode") == "quality" ? Mode::strong : Mode::weak;
}

std::string figure_of(const Record& record) {
  return param_text(record, "mode") == "quality" ? "time_to_quality" : "step_time";
}

std::optional<std::int64_t> whole(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

// Samples per step according to the parameters.
std::optional<double> step_samples(const Record& record) {
  const auto micro = whole(param_text(record, "micro_batch"));
  if (!micro) return std::nullopt;
  return static_cast<double>(*micro) * static_cast<double>(whole(param_text(record, "accumulate")).value_or(1));
}

// The global batch, if the record states it.
std::optional<std::int64_t> stated_batch(const Record& record) {
  if (const auto global = whole(record.attribute("global_batch").value_or(""))) return global;
  if (!record.protocol.is_object()) return std::nullopt;
  const auto found = record.protocol.find("global_batch");
  if (found == record.protocol.end()) return std::nullopt;
  return whole(scalar_text(*found));
}

// The mode keeps these constant: samples per step over all ranks (strong) or of one rank (weak). Empty if unknown.
std::string batch_of(const Record& record, Mode mode) {
  const auto global = stated_batch(record);
  if (global && mode == Mode::strong) return std::to_string(*global);
  if (global) return fmt::format("{:.6g}", static_cast<double>(*global) / record.world_ranks);
  // Parameters describe one rank's step; strong scaling divides that step between the ranks.
  const auto samples = step_samples(record);
  return samples ? fmt::format("{:.6g}", *samples) : std::string();
}

struct Candidate {
  Entry entry;
  Mode mode = Mode::strong;
  Likeness likeness;
  std::string batch;
  std::string split;  // how the parameters express the batch
  Estimate time;
};

// The case without its world size.
std::string title_of(const Record& record) {
  Record light;
  light.family = record.family;
  light.key = record.key;
  light.params = record.params;
  light.labels = record.attributes();
  return case_title(light);
}

// Comparable candidates; possibly of one world size only.
struct Group {
  std::vector<const Candidate*> members;
  std::set<int> worlds;

  const Candidate& first() const { return *members.front(); }
};

// An order that depends only on the records.
bool before(const Candidate* a, const Candidate* b) {
  const auto order = [](const Candidate* c) {
    return std::tuple(c->entry.record->world_ranks, c->entry.record->world_nodes, c->entry.run_index, c->entry.line);
  };
  return order(a) < order(b);
}

// The mean share of communication of these records.
std::optional<double> mean_communication(const std::vector<Entry>& entries) {
  double sum = 0;
  int count = 0;
  for (const Entry& entry : entries)
    if (const auto share = communication_share(*entry.record)) sum += share->pending, ++count;
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

Series series_of(const Group& group, const std::string& title, ExclusionList& excluded) {
  Series series{title, group.first().mode, figure_of(*group.first().entry.record), group.first().likeness, {}};
  std::map<int, std::vector<const Candidate*>> worlds;
  for (const Candidate* member : group.members) worlds[member->entry.record->world_ranks].push_back(member);
  for (auto& [ranks, members] : worlds) {
    const int nodes = members.front()->entry.record->world_nodes;  // the fewest, as members are in that order
    WorldPoint point{ranks, nodes, {}, {}, {}};
    std::vector<Estimate> times;
    for (const Candidate* member : members) {
      const int own = member->entry.record->world_nodes;
      if (own != nodes) {
        excluded.add(title, fmt::format("different layout: {} ranks on {} nodes instead of {}", ranks, own, nodes),
                     member->entry);
        continue;
      }
      times.push_back(member->time);
      point.entries.push_back(member->entry);
    }
    point.time = pooled(times);
    point.communication = mean_communication(point.entries);
    series.points.push_back(std::move(point));
  }
  return series;
}

// Why `one` is not in the series of `other`.
std::string reason_of(const Candidate& one, const Candidate& other) {
  std::vector<std::string> parts;
  const auto known = [](const std::string& text) { return text.empty() ? std::string("unknown") : text; };
  if (one.batch != other.batch)
    parts.push_back(fmt::format("different {} batch ({} instead of {})",
                                one.mode == Mode::strong ? "global" : "per-rank", known(one.batch),
                                known(other.batch)));
  else if (one.split != other.split)
    parts.push_back(fmt::format("different micro-batches ({} instead of {})", known(one.split), known(other.split)));
  if (one.likeness != other.likeness) parts.push_back(difference(one.entry, one.likeness, other.entry, other.likeness));
  return joined(parts, "; ");
}

// How many of the conditions differ.
int distance(const Candidate& a, const Candidate& b) {
  int differing = (a.batch != b.batch) + (a.split != b.split);
  for (std::size_t i = 0; i < aspect_count; ++i) differing += a.likeness[i] != b.likeness[i];
  return differing;
}

// Joins strong series whose keys express one global batch differently (as each rank's part of it), unless a world size
// has it both ways.
void join_spellings(std::vector<Group>& groups) {
  std::map<std::pair<Likeness, std::string>, std::vector<std::size_t>> same;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (groups[i].first().mode == Mode::strong && !groups[i].first().batch.empty())
      same[{groups[i].first().likeness, groups[i].first().batch}].push_back(i);
  for (const auto& [key, places] : same) {
    std::set<int> all;
    std::size_t sum = 0;
    for (const std::size_t place : places) {
      all.insert(groups[place].worlds.begin(), groups[place].worlds.end());
      sum += groups[place].worlds.size();
    }
    if (places.size() < 2 || all.size() != sum) continue;
    Group& whole = groups[places.front()];
    for (std::size_t i = 1; i < places.size(); ++i) {
      Group& part = groups[places[i]];
      whole.members.insert(whole.members.end(), part.members.begin(), part.members.end());
      part.members.clear();
    }
    whole.worlds = all;
  }
  std::erase_if(groups, [](const Group& group) { return group.members.empty(); });
  for (Group& group : groups) std::ranges::sort(group.members, before);
}

// Records of other tools may give only a rank's part of the batch. If the parts at several world sizes all add up to
// one global batch, that is what strong scaling kept.
void join_shares(std::vector<Candidate>& candidates) {
  std::optional<double> whole_batch;
  std::set<double> shares;
  for (const Candidate& candidate : candidates) {
    const auto share = step_samples(*candidate.entry.record);
    if (candidate.mode != Mode::strong || !share || stated_batch(*candidate.entry.record)) return;
    const double all = *share * candidate.entry.record->world_ranks;
    if (whole_batch.value_or(all) != all) return;
    whole_batch = all;
    shares.insert(*share);
  }
  if (shares.size() < 2) return;
  for (Candidate& candidate : candidates) candidate.batch = fmt::format("{:.6g}", *whole_batch);
}

// Groups all candidates of one configuration.
void group_candidates(const std::vector<Candidate>& candidates, SeriesSet& found, ExclusionList& excluded) {
  std::map<std::tuple<Likeness, std::string, std::string>, Group> alike;
  for (const Candidate& candidate : candidates) {
    Group& group = alike[{candidate.likeness, candidate.batch, candidate.split}];
    group.members.push_back(&candidate);
    group.worlds.insert(candidate.entry.record->world_ranks);
  }
  std::vector<Group> groups;
  for (auto& [key, group] : alike) {
    std::ranges::sort(group.members, before);
    groups.push_back(std::move(group));
  }
  join_spellings(groups);
  // The group that others are compared with comes first: most world sizes, most records, smallest world size.
  std::ranges::stable_sort(groups, [](const Group& a, const Group& b) {
    return std::tuple(b.worlds.size(), b.members.size(), *a.worlds.begin()) <
           std::tuple(a.worlds.size(), a.members.size(), *b.worlds.begin());
  });
  std::set<int> worlds;
  for (const Group& group : groups) worlds.insert(group.worlds.begin(), group.worlds.end());
  if (worlds.size() == 1) {
    for (const Group& group : groups)
      found.lone.push_back({title_of(*group.first().entry.record), *worlds.begin(), group.first().entry});
    return;
  }
  std::vector<Likeness> likenesses;
  for (const Group& group : groups)
    if (group.worlds.size() > 1) likenesses.push_back(group.first().likeness);
  if (likenesses.empty()) {
    const Candidate& first = groups.front().first();
    found.lone.push_back({title_of(*first.entry.record), *groups.front().worlds.begin(), first.entry});
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    const std::string title = title_of(*group.first().entry.record);
    if (group.worlds.size() > 1)
      found.series.push_back(series_of(group, title + distinction(group.first().likeness, likenesses), excluded));
    if (i == 0) continue;
    const auto nearest = std::min_element(
        groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(i), [&](const Group& a, const Group& b) {
          return distance(group.first(), a.first()) < distance(group.first(), b.first());
        });
    // Two full series with different batches are different cases, as their titles say.
    if (group.worlds.size() > 1 && group.first().likeness == nearest->first().likeness) continue;
    std::string reason = reason_of(group.first(), nearest->first());
    if (group.worlds.size() > 1) reason += ": a separate series";
    for (const Candidate* member : group.members) excluded.add(title, reason, member->entry);
  }
}

}  // namespace

std::optional<Estimate> time_of(const Entry& entry, std::string_view metric) {
  const Record& record = *entry.record;
  if (const Metric* found = find_metric(record, metric); found && found->unit == "s")
    if (const auto time = positive(found->value, found->ci95)) return time;
  if (record.samples.unit == "s") {
    std::vector<double> samples = record.samples.values;
    if (samples.empty() && record.samples.series) {
      try {
        samples = all_samples(*entry.run, record);
      } catch (const MissingSeries&) {  // the ranks' medians may still be there
      }
    }
    std::erase_if(samples, [](double sample) { return !std::isfinite(sample); });
    if (!samples.empty()) {
      const Summary summary = summarize(samples);
      if (const auto time = positive(summary.median, summary.ci95)) return time;
    }
    std::optional<double> slowest;
    for (const RankResult& rank : record.ranks)
      if (rank.median && std::isfinite(*rank.median)) slowest = std::max(slowest.value_or(0), *rank.median);
    return positive(slowest, std::nullopt);
  }
  return std::nullopt;
}

SeriesSet find_series(const RunSet& runs, const Likenesses& likenesses) {
  SeriesSet found;
  ExclusionList excluded;
  std::map<std::pair<Mode, std::string>, std::vector<Candidate>> by_configuration;
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    const auto mode = mode_of(record);
    if (!mode) continue;
    const auto leave = [&](const std::string& reason) {
      excluded.add(title_of(record), reason, entry, record.status != Status::ok);
    };
    if (const auto reason = unfit(record)) {
      leave(*reason);
      continue;
    }
    const auto time = time_of(entry, figure_of(record));
    if (!time) {
      leave(fmt::format("it has no {} in seconds above 0", figure_of(record)));
      continue;
    }
    by_configuration[{*mode, configuration(record, batch_parameters)}].push_back(
        {entry, *mode, likenesses.of(entry), batch_of(record, *mode),
         fmt::format("{} x {}", param_text(record, "micro_batch"), param_text(record, "accumulate")), *time});
  }
  for (auto& [key, candidates] : by_configuration) {
    join_shares(candidates);
    group_candidates(candidates, found, excluded);
  }
  std::ranges::stable_sort(found.series, [](const Series& a, const Series& b) {
    return std::tie(a.mode, a.title, a.likeness) < std::tie(b.mode, b.title, b.likeness);
  });
  found.excluded = excluded.list();
  return found;
}

Estimate efficiency(Mode mode, const Estimate& base_time, int base_ranks, const Estimate& time, int ranks) {
  const Estimate faster = ratio(base_time, time);
  return mode == Mode::weak ? faster : scaled(faster, static_cast<double>(base_ranks) / ranks);
}

Estimate efficiency(const Series& series, std::size_t point) {
  if (point == 0) return {1, std::nullopt};
  const WorldPoint& base = series.points.front();
  return efficiency(series.mode, base.time, base.ranks, series.points[point].time, series.points[point].ranks);
}

void ExclusionList::add(const std::string& title, const std::string& reason, const Entry& entry, bool minor) {
  Excluded& excluded = lines_[{title, reason}];
  if (excluded.records++ == 0) {
    excluded.title = title;
    excluded.reason = reason;
    excluded.minor = minor;
    excluded.first = entry;
  }
  const int ranks = entry.record->world_ranks;
  const auto place = std::ranges::lower_bound(excluded.ranks, ranks);
  if (place == excluded.ranks.end() || *place != ranks) excluded.ranks.insert(place, ranks);
}

std::vector<Excluded> ExclusionList::list() {
  std::vector<Excluded> all;
  for (auto& [key, excluded] : lines_) all.push_back(std::move(excluded));
  lines_.clear();
  return all;
}

}  // namespace assay::report::scaling
