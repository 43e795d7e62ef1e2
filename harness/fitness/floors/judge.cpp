#include "harness/fitness/floors/judge.h"

#include "harness/core/configs.h"
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/machine/hardware.h"
#include "harness/runs/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace assay::fitness {

namespace {

// Ordered bounds that include the value: a value outside its own interval is no more certain than that.
std::optional<Interval> usable_range(const Metric& metric) {
  if (!metric.ci95 || !std::isfinite(metric.ci95->low) || !std::isfinite(metric.ci95->high)) return std::nullopt;
  const auto [low, high] = std::minmax({metric.ci95->low, metric.ci95->high, *metric.value});
  return Interval{low, high};
}

std::string failed_checks(const Record& record) {
  std::vector<std::string> names;
  for (const Check& check : record.checks)
    if (!check.passed) names.push_back(one_line(check.name, 80));
  return joined(names);
}

// Why no figure of this record counts; empty if it does.
std::string why_unusable(const Record& record) {
  const std::string because = record.reason.empty() ? "" : ": " + one_line(record.reason);
  if (record.status == Status::skipped) return "skipped" + because;
  if (record.status == Status::error) return "broke" + because;
  const std::string failed = failed_checks(record);
  if (record.status == Status::failed || !failed.empty())
    return "its answer is wrong" + (failed.empty() ? because : ": " + failed);
  if (!record.comparable)
    return fmt::format("not comparable{}", record.flags.empty() ? because : ": " + one_line(record.flags.front()));
  return {};
}

// Why a record is of no hardware that the floor is for; empty if it is.
std::string hardware_difference(const Floor& floor, const Entry& entry) {
  std::vector<std::string> names = hardware_names(*entry.run, *entry.record);
  std::erase(names, "");
  if (is_for(floor, names)) return {};
  return fmt::format("other hardware: {}, the floor is for {}",
                     names.empty() ? "the record names none" : one_line(names.front(), 80),
                     one_line(joined(floor.hardware), 200));
}

// Where the figure comes from: the slowest rank if ranks recorded their times, else all hosts.
std::string culprit_of(const Entry& entry, const std::vector<std::string>& run_hosts) {
  const auto& ranks = entry.record->ranks;
  const RankResult* slowest = nullptr;
  for (const RankResult& rank : ranks)
    if (rank.median && (!slowest || *rank.median > *slowest->median)) slowest = &rank;
  if (ranks.size() == 1) return rank_text(ranks.front(), false);
  if (slowest) return "slowest: " + rank_text(*slowest, true);
  const auto hosts = ranks.empty() ? run_hosts : entry.record->identity().hosts;
  return hosts.empty() ? "" : fmt::format("host{} {}", hosts.size() == 1 ? "" : "s", one_line(joined(hosts)));
}

void find_figure(const Floor& floor, const Record& record, Judgement& judgement) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < record.metrics.size(); ++i) {
    const Metric& metric = record.metrics[i];
    names.push_back(one_line(metric.name, 80));
    if (metric.name != floor.metric) continue;
    judgement.pointer = fmt::format("/metrics/{}/value", i);
    if (!metric.value || !std::isfinite(*metric.value))
      judgement.reason = fmt::format("its {} is unknown (null)", floor.metric);
    else if (metric.unit.empty())
      judgement.reason = fmt::format("its {} has no unit", floor.metric);
    else
      judgement.outcome = Outcome::pass, judgement.value = metric.value, judgement.range = usable_range(metric);
    return;
  }
  // A pattern may match families that measure other things.
  judgement.outcome = Outcome::refused;
  judgement.reason = fmt::format("has no {}{}", one_line(floor.metric, 80),
                                 names.empty() ? "" : fmt::format(": it has {}", fmt::join(names, ", ")));
}

// ", floors for it: h200-sxm" of the shipped ones.
std::string shipped_for(const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& word : config_names("floors"))
    if (const Floor floor = find_floors(word).floors.front(); !floor.hardware.empty() && is_for(floor, names))
      found.push_back(word);
  return found.empty() ? "" : "; shipped for that: " + joined(found);
}

}  // namespace

bool is_for(const Floor& floor, const std::vector<std::string>& names) {
  return floor.hardware.empty() || std::ranges::any_of(floor.hardware, [&](const std::string& pattern) {
           return std::ranges::any_of(names, [&](const std::string& name) { return matches(pattern, name); });
         });
}

void require_hardware(const Floors& floors, std::vector<std::string> names) {
  std::erase(names, "");
  if (names.empty() || is_for(floors.floors.front(), names)) return;
  throw UsageError(fmt::format("floors {} ({}) are for {}, and not for {}{}", one_line(floors.name, 80), floors.file,
                               one_line(joined(floors.floors.front().hardware), 200), one_line(first_few(names)),
                               shipped_for(names)));
}

void require_hardware_of(const RunSet& runs, const Floors& floors) {
  std::set<std::string> names;
  for (const Entry& entry : runs.entries())
    for (std::string& name : hardware_names(*entry.run, *entry.record)) names.insert(std::move(name));
  require_hardware(floors, {names.begin(), names.end()});
}

std::string rank_text(const RankResult& rank, bool with_number) {
  std::vector<std::string> parts;
  if (with_number) parts.push_back(fmt::format("rank {}", rank.rank));
  if (!rank.host.empty()) parts.push_back("host " + one_line(rank.host, 80));
  if (!rank.device.empty()) parts.push_back(one_line(rank.device, 80));
  return joined(parts);
}

std::vector<double> rank_figures(const Record& record, double value, std::string_view unit) {
  const bool rate = unit.ends_with("/s");
  if (record.ranks.size() < 2 || (!rate && unit != "s")) return {};
  double slowest = 0;
  for (const RankResult& rank : record.ranks) {
    if (!rank.median || !(*rank.median > 0)) return {};
    slowest = std::max(slowest, *rank.median);
  }
  std::vector<double> figures;
  for (const RankResult& rank : record.ranks)
    figures.push_back(value * (rate ? slowest / *rank.median : *rank.median / slowest));
  return figures;
}

// A figure without an interval (too few or too correlated samples) is judged by its value alone: inconclusive would
// leave every short run without a verdict. The line says that there was no interval; a floor that must hold with 95 %
// certainty asks for `min_samples` in its protocol.
Outcome judge(double value, const std::optional<Interval>& range, Bound bound, double limit) {
  const double low = range ? range->low : value, high = range ? range->high : value;
  if (bound == Bound::at_least)
    return low >= limit ? Outcome::pass : high < limit ? Outcome::fail : Outcome::inconclusive;
  return high <= limit ? Outcome::pass : low > limit ? Outcome::fail : Outcome::inconclusive;
}

double shortfall(double value, Bound bound, double limit) {
  const double beyond = bound == Bound::at_least ? limit - value : value - limit;
  if (limit == 0) return beyond;
  return beyond / std::abs(limit);
}

std::string distance_text(double value, Bound bound, double limit) {
  if (value == limit) return "at the limit";
  const std::string_view side = value < limit ? "below" : "above";
  const std::string_view what = bound == Bound::at_least ? "floor" : "ceiling";
  if (limit == 0) return fmt::format("{} the {}", side, what);
  const double percent = std::abs(value - limit) / std::abs(limit) * 100;
  const int places = percent >= 99.5 && percent < 99.95 ? 1 : 0;  // 99.6 % must not read as 100 %
  return percent < 10 ? fmt::format("{:.2g} % {} the {}", percent, side, what)
                      : fmt::format("{:.{}f} % {} the {}", percent, places, side, what);
}

Judgement examine(const Floor& floor, const Entry& entry, const std::vector<std::string>& run_hosts) {
  Judgement judgement;
  judgement.entry = entry;
  judgement.culprit = culprit_of(entry, run_hosts);
  judgement.reason = hardware_difference(floor, entry);
  if (!judgement.reason.empty()) {
    judgement.outcome = Outcome::refused;
    return judgement;
  }
  judgement.reason = why_unusable(*entry.record);
  if (!judgement.reason.empty()) return judgement;
  judgement.reason = protocol_difference(floor, *entry.record);
  if (!judgement.reason.empty()) {
    judgement.outcome = Outcome::refused;
    judgement.reason = "different protocol: " + judgement.reason;
    return judgement;
  }
  find_figure(floor, *entry.record, judgement);
  return judgement;
}

void decide(Judgement& judgement, const Floor& floor, double limit) {
  judgement.limit = limit;
  judgement.outcome = judge(*judgement.value, judgement.range, floor.bound, limit);
  judgement.reason = judgement.outcome == Outcome::inconclusive ? "its 95 % interval contains the limit"
                                                                : distance_text(*judgement.value, floor.bound, limit);
  if (!judgement.range) judgement.reason += "; no interval: the value alone decides";
}

}  // namespace assay::fitness
