#include "harness/core/text.h"
#include "harness/runs/figures.h"
#include "reports/answers/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace assay::report {

namespace {

std::string why_wrong(const Record& record) {
  for (const Check& check : record.checks)
    if (!check.passed) return "check " + check.name + " failed";
  return record.reason.empty() ? std::string(name_of(record.status)) : first_line(record.reason);
}

}  // namespace

Answer right_answer(const RunSet& runs) {
  constexpr std::size_t max_named = 20;
  Answer answer{"right", "Right", "", Tone::plain, {}};
  std::map<Status, std::int64_t> counts;
  std::int64_t checks = 0, unchecked = 0, unreadable = 0;
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    ++counts[record.status];
    checks += std::ranges::count_if(record.checks, &Check::passed);
    if (record.status == Status::ok && record.checks.empty()) ++unchecked;
    const bool wrong = record.status == Status::failed || record.status == Status::error;
    if (wrong && answer.evidence.size() < max_named)
      answer.evidence.push_back(fmt::format("{}: {}", case_title(record), one_line(why_wrong(record))));
  }
  for (const RunData& run : runs.runs()) unreadable += static_cast<std::int64_t>(run.problems.size());
  const std::int64_t held = counts[Status::ok], failed = counts[Status::failed], broke = counts[Status::error];
  if (failed + broke > 0) {
    answer.tone = Tone::bad;
    std::vector<std::string> parts;
    if (failed > 0) parts.push_back(fmt::format("{} gave a wrong answer", plural(failed, "case")));
    if (broke > 0) parts.push_back(fmt::format("{} broke", plural(broke, "case")));
    answer.text = fmt::format("no: of {} {}. First: {}", plural(held + failed + broke, "measured case"),
                              fmt::join(parts, ", "), answer.evidence.front());
  } else if (held == 0) {
    answer.text = "nothing was measured";
  } else if (unchecked == held) {
    answer.text = fmt::format("unknown: {}, and none has a check", plural(held, "measured case"));
  } else {
    answer.tone = unreadable > 0 ? Tone::warn : Tone::good;
    answer.text = fmt::format("yes: {}, and every answer that was timed was checked and correct ({})",
                              plural(held, "measured case"), plural(checks, "check"));
    if (unchecked > 0) answer.text += fmt::format("; {} without a check", plural(unchecked, "case"));
    if (unreadable > 0) answer.text += fmt::format("; {} of records could not be read", plural(unreadable, "line"));
  }
  return answer;
}

}  // namespace assay::report
