#include "reports/history/branch.h"

#include "harness/core/units.h"
#include "harness/statistics/statistics.h"
#include "reports/data/cells.h"
#include "reports/history/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

namespace assay::history {

namespace {

constexpr double suspicious = 1e-3;  // p of a change that is worth measuring again

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
  const std::size_t tests = main.analysis.nights.empty() ? 0 : main.analysis.nights.back().tested;
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
    std::vector<double> values;
    for (const auto& [night, figures] : nights) values.push_back(median(figures));
    const auto found = at == tracked.end() ? std::nullopt
                                           : compare(main.series[at->second].track, main.analysis.series[at->second],
                                                     values, main.options, tests);
    if (found)
      result.changes.push_back({at->second, *found, values.size()});
    else
      ++result.new_series;
  }
  judge_branch(result.changes, main.options);
  return result;
}

void judge_branch(std::vector<BranchChange>& changes, const Options& options) {
  std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.found.p < b.found.p; });
  std::vector<double> eligible;
  for (const BranchChange& one : changes)
    if (one.found.may_alarm) eligible.push_back(one.found.p);
  std::size_t left = passing(eligible, options.false_alarms, changes.size());
  for (BranchChange& one : changes) {
    if (one.found.may_alarm && left > 0) {
      one.verdict = one.found.shift < 0 ? BranchVerdict::slower : BranchVerdict::faster;
      --left;
    } else if ((one.found.p <= suspicious || one.found.beyond) && std::abs(one.found.shift) >= options.tolerance) {
      one.verdict = BranchVerdict::suspect;
    }
  }
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
    const Interval interval{std::expm1(one.found.interval.low), std::expm1(one.found.interval.high)};
    table.rows.push_back({text_cell(main.series[one.series].name),
                          text_cell(std::string(name_of(one.verdict)), tone),
                          report::percent_cell({std::expm1(one.found.shift), interval}),
                          report::percent_interval_cell(interval),
                          {fmt::format("{:.2g}", one.found.p), one.found.p}});
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
                        {{"value", std::expm1(one.found.shift)},
                         {"low", std::expm1(one.found.interval.low)},
                         {"high", std::expm1(one.found.interval.high)}}},
                       {"p", one.found.p},
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
