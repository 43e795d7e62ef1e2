#include "harness/runs/figures.h"
#include "harness/runs/groups.h"
#include "reports/answers/answers.h"
#include "reports/bounds/bounds.h"
#include "reports/model/cells.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report {

namespace {

std::string finding_text(const RuleResult& finding) {
  std::string text = fmt::format("{}: {}", finding.case_text(), finding.text());
  if (const std::string gain = finding.gain_text(); !gain.empty())
    text += fmt::format("; the gain of changing it is {}", gain);
  return text;
}

// The newest training cases that ran.
std::vector<Entry> training_cases(const RunSet& runs) {
  std::vector<Entry> found;
  for (const MachineRuns& machine : by_machine(runs))
    for (const CaseRuns& one : machine.cases) {
      const Record& record = *one.newest().record;
      if (record.status == Status::ok && is_training(record)) found.push_back(one.newest());
    }
  return found;
}

}  // namespace

Answer limit_answer(const RunSet& runs, const std::vector<Diagnosis>& found) {
  constexpr std::size_t max_evidence = 50;
  Answer answer{"limit", "Limit", "", Tone::plain, {}};
  const std::vector<RuleResult> fired = by_gain(found, max_evidence);
  const std::vector<Entry> training = training_cases(runs);
  for (const RuleResult& finding : fired)
    if (answer.evidence.size() < max_evidence) answer.evidence.push_back(finding_text(finding));
  if (!fired.empty()) {
    const bool bad = std::ranges::any_of(fired, [](const RuleResult& one) { return one.state == RuleState::bad; });
    answer.tone = bad ? Tone::bad : Tone::warn;
    answer.text = fmt::format("{}. To do: {}", finding_text(fired.front()), fired.front().rule->fix);
  } else if (training.empty()) {
    answer.text = "unknown: no training step was measured";
  } else {
    answer.tone = Tone::good;
    const auto longest = std::ranges::max_element(training, [](const Entry& a, const Entry& b) {
      const Metric *x = find_metric(*a.record, "step_time"), *y = find_metric(*b.record, "step_time");
      return (x ? *x->value : 0) < (y ? *y->value : 0);
    });
    answer.text =
        fmt::format("computation: nothing else holds back a training step ({})", case_title(*longest->record));
    const Metric* rate = find_metric(*longest->record, "model_flops");
    const BoundShare scale = rate ? bound_share_of(*longest, *rate) : BoundShare{};
    if (scale.low()) {
      answer.tone = scale.unusual() ? Tone::warn : Tone::plain;
      answer.text = fmt::format("unknown: a training step reaches {} of the peak, and no rule says why ({})",
                                percent_text({*scale.share}), case_title(*longest->record));
    }
  }
  return answer;
}

}  // namespace assay::report
