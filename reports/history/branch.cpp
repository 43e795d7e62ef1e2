#include "reports/history/branch.h"

#include "harness/core/units.h"
#include "harness/statistics/statistics.h"
#include "reports/history/document.h"
#include "reports/history/sight.h"
#include "reports/model/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

namespace assay::history {

namespace {

constexpr double suspicious = 1e-3;  // p of a change that is worth measuring again

std::size_t number_of(const std::vector<BranchChange>& changes, BranchVerdict verdict) {
  return static_cast<std::size_t>(
      std::count_if(changes.begin(), changes.end(), [&](const BranchChange& one) { return one.verdict == verdict; }));
}

bool is_suspicious(const Comparison& found, const Options& options) {
  return (found.p <= suspicious || found.beyond) && std::abs(found.shift) >= options.tolerance;
}

}  // namespace

bool BranchComparison::is_blind() const {
  return 2 * (number_of(changes, BranchVerdict::undecided) + new_series) > changes.size() + new_series;
}

std::string BranchComparison::blind_text() const {
  const std::size_t blind = number_of(changes, BranchVerdict::undecided) + new_series;
  if (blind == 0) return "";
  return fmt::format("blind: in {} of {} series a step of {:g} % would not have shown{}", blind,
                     changes.size() + new_series, 100 * blind_step,
                     new_series > 0 ? fmt::format(" ({} have too few nights on the main branch)", new_series) : "");
}

ExitCode BranchComparison::exit_code(bool strict) const {
  if (number_of(changes, BranchVerdict::slower) > 0) return ExitCode::failed;
  return changes.empty() || (strict && is_blind()) ? ExitCode::no_data : ExitCode::ok;
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
    const auto compared = [&] {
      return at == tracked.end() ? std::nullopt
                                 : compare(main.series[at->second].track, main.analysis.series[at->second], values,
                                           main.options, tests);
    };
    const auto found = compared();
    if (!found) {
      ++result.new_series;
      continue;
    }
    // As if the branch were slower than the level by that much, however it is.
    for (double& value : values) value -= found->shift + std::log1p(blind_step);
    result.changes.push_back(
        {at->second, *found, values.size(), BranchVerdict::same, !is_suspicious(*compared(), main.options)});
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
    } else if (is_suspicious(one.found, options)) {
      one.verdict = BranchVerdict::suspect;
    } else if (one.blind) {
      one.verdict = BranchVerdict::undecided;
    }
  }
}

report::Document branch_document(const BranchComparison& comparison, const History& main) {
  using report::text_cell;
  report::Document document{"Assay history: " + comparison.branch, "", "", report::Tone::good, {}};
  report::Table table{"changes",
                      "",
                      {{"series", "series"},
                       {"verdict", "verdict"},
                       {"speed", "speed", report::Align::right},
                       {"interval", "95 %", report::Align::right},
                       {"p", "p", report::Align::right}},
                      {}};
  for (const BranchChange& one : comparison.changes) {
    if (one.verdict == BranchVerdict::same || one.verdict == BranchVerdict::undecided) continue;
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
  const auto count = [&](BranchVerdict verdict) { return number_of(comparison.changes, verdict); };
  document.verdict =
      fmt::format("slower: {} · faster: {} · suspects: {} · same: {} · undecided: {} · not compared: {}",
                  count(BranchVerdict::slower), count(BranchVerdict::faster), count(BranchVerdict::suspect),
                  count(BranchVerdict::same), count(BranchVerdict::undecided), comparison.new_series);
  document.headline = fmt::format("{} against the regimes in force of {} series, {}", comparison.branch,
                                  main.series.size(), promise(main.options));
  if (count(BranchVerdict::slower) > 0)
    document.tone = report::Tone::bad;
  else if (comparison.changes.empty() || count(BranchVerdict::suspect) > 0 || comparison.is_blind())
    document.tone = report::Tone::warn;
  report::Section section{"changes", "What changed", {}};
  if (const std::string blind = comparison.blind_text(); !blind.empty())
    section.blocks.push_back(
        report::Text{blind + ".", comparison.is_blind() ? report::Tone::warn : report::Tone::faint});
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  if (count(BranchVerdict::suspect) > 0)
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
          {"verdict", code == ExitCode::failed                             ? Json("slower")
                      : code == ExitCode::no_data || comparison.is_blind() ? Json()
                                                                           : Json("not slower")},
          {"changes", std::move(changes)},
          {"series_tested", comparison.changes.size()},
          {"not_compared", comparison.new_series},
          {"false_alarms_per_night", main.options.false_alarms},
          {"tolerance", main.options.tolerance}};
}

}  // namespace assay::history
