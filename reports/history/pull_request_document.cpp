// The comparison of a change's two builds: a comment, and JSON.
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "reports/ab/document.h"
#include "reports/history/document.h"
#include "reports/model/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::history {

namespace {

std::string change_text(double ratio) {
  return std::isfinite(ratio) && ratio > 0 ? fmt::format("{:+.1f} %", 100 * (ratio - 1)) : "?";
}

// What matters first: slower, undecided, faster, the same; of each the largest.
std::vector<const ab::Case*> by_weight(const std::vector<ab::Case>& cases) {
  std::vector<const ab::Case*> all;
  for (const ab::Case& one : cases) all.push_back(&one);
  const auto rank = [](const ab::Case* one) {
    const Direction verdict = one->outcome.verdict;
    const int order = verdict == Direction::slower    ? 0
                      : verdict == Direction::unknown ? 1
                      : verdict == Direction::faster  ? 2
                                                      : 3;
    return std::pair(order, -std::abs(std::log(one->outcome.ratio)));
  };
  std::ranges::stable_sort(all, [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
  return all;
}

}  // namespace

report::Document pull_request_document(const PullRequestResult& result) {
  using report::text_cell;
  constexpr std::size_t max_rows = 8;  // so that a comment has at most 20 lines
  const ExitCode code = result.code();
  report::Document document{"Speed of this change", "", "", report::Tone::good, {}};
  document.tone = code == ExitCode::failed    ? report::Tone::bad
                  : code == ExitCode::no_data ? report::Tone::warn
                                              : report::Tone::good;
  document.verdict =
      fmt::format("{}: {} slower, {} faster, {} the same, {} undecided, {} not measured",
                  code == ExitCode::failed    ? "RED"
                  : code == ExitCode::no_data ? "AMBER"
                                              : "GREEN",
                  result.count(Direction::slower), result.count(Direction::faster), result.count(Direction::same),
                  result.count(Direction::unknown), result.not_measured.size());
  document.headline = fmt::format("{} {} against {}, side by side in {}; {:g} % for any wrong verdict",
                                  result.head.hash.substr(0, 12), in_quotes(result.head.subject, 60),
                                  result.base.hash.substr(0, 12), format_seconds(result.seconds), 100 * result.error);
  report::Table table{
      "cases",
      "",
      {{"case"}, {"verdict"}, report::right("speed"), report::right("interval"), report::right("pairs")},
      {}};
  const auto order = by_weight(result.cases);
  for (std::size_t i = 0; i < std::min(order.size(), max_rows); ++i) {
    const ab::Outcome& outcome = order[i]->outcome;
    const report::Tone tone = outcome.verdict == Direction::slower    ? report::Tone::bad
                              : outcome.verdict == Direction::unknown ? report::Tone::warn
                                                                      : report::Tone::good;
    table.rows.push_back({text_cell(one_line(order[i]->name)),
                          text_cell(std::string(name_of(outcome.verdict, "undecided")), tone),
                          text_cell(change_text(outcome.ratio)),
                          text_cell(fmt::format("{} .. {}", change_text(outcome.low), change_text(outcome.high))),
                          report::count_cell(outcome.pairs)});
  }
  report::Section section{"cases", "", {}};
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
  const auto say_names = [&](const char* what, const std::vector<std::string>& names, report::Tone tone) {
    if (!names.empty())
      section.blocks.emplace_back(report::Text{fmt::format("{}: {}.", what, first_few(names, 6)), tone});
  };
  if (order.size() > max_rows)
    section.blocks.emplace_back(report::Text{fmt::format("{} more cases are {} or less.", order.size() - max_rows,
                                                         name_of(order[max_rows]->outcome.verdict, "undecided")),
                                             report::Tone::faint});
  say_names("Not measured within the budget", result.not_measured, report::Tone::warn);
  say_names("Only one build has", result.one_sided, report::Tone::faint);
  document.sections.push_back(std::move(section));
  return document;
}

Json pull_request_json(const PullRequestResult& result) {
  const auto commit = [](const Commit& one) {
    return Json{{"commit", one.hash}, {"date", one.date}, {"subject", one.subject}};
  };
  ab::Result all;
  all.cases = result.cases, all.one_sided = result.one_sided;
  Json cases = report::ab_json(all, {}).at("cases");
  return {{"schema", 1},
          {"base", commit(result.base)},
          {"head", commit(result.head)},
          {"slower", result.count(Direction::slower)},
          {"cases", std::move(cases)},
          {"one_sided", result.one_sided},
          {"not_measured", result.not_measured},
          {"error", result.error},
          {"seconds", result.seconds}};
}

}  // namespace assay::history
