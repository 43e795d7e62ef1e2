#include "harness/runs/figures.h"
#include "harness/runs/groups.h"
#include "reports/answers/answers.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report {

namespace {

std::string finding_text(const RuleResult& finding) {
  const auto ceiling = finding.ceiling();
  std::string text = fmt::format("{}: {}", case_title(*finding.entry->record), finding.text());
  if (ceiling && *ceiling > 1) text += fmt::format("; without that it is about {:.3g} times as fast", *ceiling);
  return text;
}

// The newest training cases that ran.
std::vector<const Record*> training_cases(const RunSet& runs) {
  std::vector<const Record*> found;
  for (const MachineRuns& machine : by_machine(runs))
    for (const CaseRuns& one : machine.cases) {
      const Record& record = *one.newest().record;
      if (record.status == Status::ok && is_training(record)) found.push_back(&record);
    }
  return found;
}

}  // namespace

Answer limit_answer(const RunSet& runs, const std::vector<Diagnosis>& found) {
  constexpr std::size_t max_evidence = 50;
  Answer answer{"limit", "Limit", "", Tone::plain, {}};
  std::vector<RuleResult> fired;
  for (const Diagnosis& diagnosis : found) fired.insert(fired.end(), diagnosis.fired.begin(), diagnosis.fired.end());
  const auto gain = [](const RuleResult& finding) { return std::pair(finding.state, finding.ceiling().value_or(1)); };
  std::ranges::stable_sort(fired, [&](const RuleResult& a, const RuleResult& b) { return gain(a) > gain(b); });
  const std::vector<const Record*> training = training_cases(runs);
  for (const RuleResult& finding : fired)
    if (answer.evidence.size() < max_evidence) answer.evidence.push_back(finding_text(finding));
  if (!fired.empty()) {
    answer.tone = fired.front().state == RuleState::bad ? Tone::bad : Tone::warn;
    answer.text = fmt::format("{}. To do: {}", finding_text(fired.front()), fired.front().rule->fix);
  } else if (training.empty()) {
    answer.text = "unknown: no training step was measured";
  } else {
    answer.tone = Tone::good;
    const auto longest = std::ranges::max_element(training, [](const Record* a, const Record* b) {
      const Metric *x = find_metric(*a, "step_time"), *y = find_metric(*b, "step_time");
      return (x ? *x->value : 0) < (y ? *y->value : 0);
    });
    answer.text = fmt::format("computation: nothing else holds back a training step ({})", case_title(**longest));
  }
  return answer;
}

}  // namespace assay::report
