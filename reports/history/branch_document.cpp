// The comparison of a branch, for people and for machines.
#include "reports/history/document.h"
#include "reports/model/cells.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace assay::history {

report::Document branch_document(const BranchComparison& comparison, const History& main) {
  using report::text_cell;
  report::Document document{"Assay history: " + comparison.branch, "", "", report::Tone::good, {}};
  report::Table table{
      "changes",
      "",
      {{"series"}, {"verdict"}, report::right("speed"), report::right("interval", "95 %"), report::right("p")},
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
  document.verdict = fmt::format("slower: {} · faster: {} · suspects: {} · same: {} · undecided: {} · not compared: {}",
                                 comparison.count(BranchVerdict::slower), comparison.count(BranchVerdict::faster),
                                 comparison.count(BranchVerdict::suspect), comparison.count(BranchVerdict::same),
                                 comparison.count(BranchVerdict::undecided), comparison.new_series);
  document.headline = fmt::format("{} against the regimes in force of {} series, {}", comparison.branch,
                                  main.series.size(), promise(main.options));
  if (comparison.count(BranchVerdict::slower) > 0)
    document.tone = report::Tone::bad;
  else if (comparison.changes.empty() || comparison.count(BranchVerdict::suspect) > 0 || comparison.is_blind())
    document.tone = report::Tone::warn;
  report::Section section{"changes", "What changed", {}};
  if (const std::string blind = comparison.blind_text(); !blind.empty())
    section.blocks.push_back(
        report::Text{blind + ".", comparison.is_blind() ? report::Tone::warn : report::Tone::faint});
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  if (comparison.count(BranchVerdict::suspect) > 0)
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
