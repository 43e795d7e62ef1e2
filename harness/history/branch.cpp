#include "harness/history/branch.h"

#include "harness/history/sight.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

namespace assay::history {

namespace {

constexpr double suspicious = 1e-3;  // p of a change that is worth measuring again

bool is_suspicious(const Comparison& found, const Options& options) {
  return (found.p <= suspicious || found.beyond) && std::abs(found.shift) >= options.tolerance;
}

}  // namespace

std::size_t BranchComparison::count(BranchVerdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(changes, verdict, &BranchChange::verdict));
}

bool BranchComparison::is_blind() const {
  return 2 * (count(BranchVerdict::undecided) + new_series) > changes.size() + new_series;
}

std::string BranchComparison::blind_text() const {
  const std::size_t blind = count(BranchVerdict::undecided) + new_series;
  if (blind == 0) return "";
  return fmt::format("blind: in {} of {} series a step of {:g} % would not have shown{}", blind,
                     changes.size() + new_series, 100 * blind_step,
                     new_series > 0 ? fmt::format(" ({} have too few nights on the main branch)", new_series) : "");
}

ExitCode BranchComparison::exit_code(bool strict) const {
  if (count(BranchVerdict::slower) > 0) return ExitCode::failed;
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
  std::ranges::stable_sort(changes, [](const auto& a, const auto& b) { return a.found.p < b.found.p; });
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

}  // namespace assay::history
