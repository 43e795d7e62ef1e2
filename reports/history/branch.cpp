#include "reports/history/branch.h"

#include "harness/core/units.h"
#include "harness/statistics/statistics.h"
#include "reports/data/cells.h"
#include "reports/history/document.h"

#include <fmt/format.h>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/binomial.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace assay::history {

namespace {

constexpr std::size_t max_base = 180;         // nights of the regime in force
constexpr double suspicious = 1e-3;           // p of a change that is worth measuring again
constexpr double median_variance = M_PI / 2;  // of a median, in variances of a mean

// How likely one night lies so far from the median of these. Beyond all of them, the tail falls with the power 1.5 of
// the distance: as the detector's.
double tail(std::span<const double> base, double level, double distance) {
  std::size_t beyond = 0;
  double extreme = 0;
  for (const double value : base) {
    beyond += std::abs(value - level) >= distance ? 1 : 0;
    extreme = std::max(extreme, std::abs(value - level));
  }
  const auto all = static_cast<double>(base.size() + 1);
  if (beyond > 0) return (static_cast<double>(beyond) + 1) / all;
  return extreme > 0 ? std::pow(distance / extreme, -1.5) / all : 1 / all;
}

std::optional<BranchChange> change_of(const TrackedSeries& series, const SeriesState& state,
                                      const std::map<Night, std::vector<double>>& nights) {
  const Night from = state.regimes.empty() ? INT32_MIN : state.regimes.back();
  const auto first = series.at_or_after(from);
  std::span<const double> base(series.track.values);
  if (first) base = base.subspan(*first);
  if (base.size() > max_base) base = base.last(max_base);
  if (base.size() < min_nights) return std::nullopt;
  std::vector<double> values;
  for (const auto& [night, figures] : nights) values.push_back(median(figures));
  const double level = median(base);
  BranchChange change;
  change.nights = values.size();
  change.shift = median(values) - level;
  const auto n = static_cast<double>(base.size()), m = static_cast<double>(values.size());
  const double sigma = std::max(state.sigma, robust_sigma(base));
  const double error = sigma * std::sqrt((values.size() > 2 ? median_variance : 1) / m + median_variance / n);
  change.interval = {change.shift - 1.96 * error, change.shift + 1.96 * error};
  if (error > 0) {
    const boost::math::students_t t(n - 1);
    const double by_t = 2 * boost::math::cdf(complement(t, std::abs(change.shift) / error));
    // A median of m nights lies there only if half of them do.
    const auto half = static_cast<unsigned>((values.size() + 1) / 2);
    const double ways = boost::math::binomial_coefficient<double>(static_cast<unsigned>(values.size()), half);
    const double by_tail = std::min(1.0, ways * std::pow(tail(base, level, std::abs(change.shift)), half));
    change.p = std::max(by_t, by_tail);
  } else {
    change.p = change.shift == 0 ? 1 : 1 / (n + 1);
  }
  return change;
}

// Benjamini & Hochberg 1995.
double threshold(const std::vector<BranchChange>& sorted, double rate) {
  double limit = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double at = rate * static_cast<double>(i + 1) / static_cast<double>(sorted.size());
    if (sorted[i].p <= at) limit = at;
  }
  return limit;
}

}  // namespace

std::string_view name_of(BranchVerdict verdict) {
  constexpr std::string_view names[] = {"slower", "faster", "suspect", "same"};
  return names[static_cast<std::size_t>(verdict)];
}

ExitCode BranchComparison::exit_code() const {
  if (changes.empty()) return ExitCode::no_data;
  const auto slower = [](const BranchChange& one) { return one.verdict == BranchVerdict::slower; };
  return std::any_of(changes.begin(), changes.end(), slower) ? ExitCode::failed : ExitCode::ok;
}

BranchComparison compare_branch(const store::Contents& with_branch, const std::string& branch, const History& main) {
  BranchComparison result{branch, {}, 0};
  std::set<std::int64_t> runs;
  for (const store::Run& run : with_branch.runs)
    if (run.branch == branch) runs.insert(run.number);
  std::unordered_map<std::int64_t, std::size_t> tracked;
  for (std::size_t i = 0; i < main.series.size(); ++i) tracked[main.series[i].newest] = i;
  for (const store::Series& series : with_branch.series) {
    const double sign = series.identity.better == Better::higher ? 1 : -1;
    const auto at = tracked.find(series.number);
    std::map<Night, std::vector<double>> nights;
    for (const store::Point& point : series.points)
      if (runs.contains(point.run))
        nights[point.night].push_back(sign * point.log - (at == tracked.end() ? 0 : main.series[at->second].offset));
    if (nights.empty()) continue;
    auto change = at == tracked.end() ? std::nullopt
                                      : change_of(main.series[at->second], main.analysis.series[at->second], nights);
    if (!change) {
      ++result.new_series;
      continue;
    }
    change->series = at->second;
    result.changes.push_back(*change);
  }
  std::stable_sort(result.changes.begin(), result.changes.end(),
                   [](const auto& a, const auto& b) { return a.p < b.p; });
  const double limit = threshold(result.changes, main.options.false_alarms);
  for (BranchChange& one : result.changes) {
    if (std::abs(one.shift) < main.options.tolerance) continue;
    if (one.p <= limit)
      one.verdict = one.shift < 0 ? BranchVerdict::slower : BranchVerdict::faster;
    else if (one.p <= suspicious)
      one.verdict = BranchVerdict::suspect;
  }
  return result;
}

report::Document branch_document(const BranchComparison& comparison, const History& main) {
  using report::text_cell;
  report::Document document{"Assay history: " + comparison.branch, "", "", report::Tone::good, {}};
  std::map<BranchVerdict, std::size_t> counts;
  report::Table table{"changes",
                      "",
                      {{"series", "series"},
                       {"verdict", "verdict"},
                       {"speed", "speed", report::Align::right},
                       {"interval", "95 %", report::Align::right},
                       {"p", "p", report::Align::right}},
                      {}};
  for (const BranchChange& one : comparison.changes) {
    ++counts[one.verdict];
    if (one.verdict == BranchVerdict::same) continue;
    const report::Tone tone = one.verdict == BranchVerdict::slower   ? report::Tone::bad
                              : one.verdict == BranchVerdict::faster ? report::Tone::good
                                                                     : report::Tone::warn;
    const Interval interval{std::expm1(one.interval.low), std::expm1(one.interval.high)};
    table.rows.push_back({text_cell(main.series[one.series].name),
                          text_cell(std::string(name_of(one.verdict)), tone),
                          report::percent_cell({std::expm1(one.shift), interval}),
                          report::percent_interval_cell(interval),
                          {fmt::format("{:.2g}", one.p), one.p}});
  }
  document.verdict = fmt::format("slower: {} · faster: {} · suspects: {} · same: {} · not compared: {}",
                                 counts[BranchVerdict::slower], counts[BranchVerdict::faster],
                                 counts[BranchVerdict::suspect], counts[BranchVerdict::same], comparison.new_series);
  document.headline = fmt::format("{} against the regimes in force of {} series, {}", comparison.branch,
                                  main.series.size(), promise(main.options));
  if (counts[BranchVerdict::slower] > 0)
    document.tone = report::Tone::bad;
  else if (comparison.changes.empty() || counts[BranchVerdict::suspect] > 0)
    document.tone = report::Tone::warn;
  report::Section section{"changes", "What changed", {}};
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  if (counts[BranchVerdict::suspect] > 0)
    section.blocks.push_back(
        report::Text{"Suspects may be noise and fail nothing: `assay ab` decides by measuring both builds in turn.",
                     report::Tone::faint});
  if (!section.blocks.empty()) document.sections.push_back(std::move(section));
  return document;
}

Json branch_json(const BranchComparison& comparison, const History& main) {
  Json changes = Json::array();
  for (const BranchChange& one : comparison.changes)
    changes.push_back({{"series", main.series[one.series].name},
                       {"verdict", name_of(one.verdict)},
                       {"shift",
                        {{"value", std::expm1(one.shift)},
                         {"low", std::expm1(one.interval.low)},
                         {"high", std::expm1(one.interval.high)}}},
                       {"p", one.p},
                       {"nights", one.nights}});
  const ExitCode code = comparison.exit_code();
  return {{"schema", 1},
          {"branch", comparison.branch},
          {"verdict", code == ExitCode::failed    ? Json("slower")
                      : code == ExitCode::no_data ? Json()
                                                  : Json("not slower")},
          {"changes", std::move(changes)},
          {"series_tested", comparison.changes.size()},
          {"not_compared", comparison.new_series},
          {"false_alarms_per_night", main.options.false_alarms},
          {"tolerance", main.options.tolerance}};
}

}  // namespace assay::history
