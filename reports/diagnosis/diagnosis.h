// Diagnosis of what holds cases back: rules applied to the evidence of records.
#pragma once

#include "harness/core/words.h"
#include "reports/diagnosis/evidence.h"

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

// Rules of diagnosis: data in configs/diagnosis.

// Rules with equal ids are alternatives: the worst of them counts.
struct Rule {
  std::string id;        // "data-starved"
  std::string evidence;  // a name of evidence.h
  double warn = 0;
  std::optional<double> bad;  // absent: never worse than a warning
  // If this evidence is that large, it would itself give the rule's number: the rule is not judged. Empty: none.
  std::string unless;
  double unless_at_least = 0;
  std::string says;  // with {value}
  std::string fix;
  std::string source;
};

// Throws UsageError that names each problem's place in the file.
std::vector<Rule> load_rules(const std::filesystem::path& path);
// Those shipped: configs/diagnosis/rules.json.
const std::vector<Rule>& shipped_rules();

// From the least to the most telling.
enum class RuleState { not_judged, quiet, cannot_say, warn, bad };
constexpr auto words(RuleState) {
  return std::to_array<std::string_view>({"not_judged", "quiet", "cannot_say", "warn", "bad"});
}
using assay::name_of;

// A rule's judgement of one case.
struct RuleResult {
  const Rule* rule = nullptr;
  const Entry* entry = nullptr;  // null: no case can be judged
  RuleState state = RuleState::not_judged;
  Evidence evidence;
  std::string machine = {};  // MachineRuns::name; empty if all runs are of one machine

  // "train gpt2-tiny f32 2 x 32", of several machines with " – p5.48xlarge".
  std::string case_text() const;
  // How many times as fast the case would become if the cause were gone (Amdahl); absent: unknown.
  std::optional<double> ceiling() const;
  // "about 1.3 x", "at most 2 x"; empty if it is unknown.
  std::string gain_text() const;
  // "23 % of a step waits for data".
  std::string text() const;
};

// Judges one case: bad or warn if the number's whole interval is at or above the threshold, quiet if all of it is below
// `warn`, otherwise it cannot be said.
RuleResult judge(const Rule& rule, const Entry& entry, const EvidenceSet& evidence);

// One per id of a rule, in the file's order: the worst of its cases and alternatives.
struct Diagnosis {
  std::string id;
  RuleResult worst;
  std::vector<RuleResult> fired;  // all that are a warning or bad, the worst first
};

// Looks at the newest record of each case that is ok; `rules` must outlive the result.
std::vector<Diagnosis> diagnose(const RunSet& runs, const std::vector<Rule>& rules);

// What fired, at most so many of a rule, the largest gain first; those of unknown gain last, the worst first.
std::vector<RuleResult> by_gain(const std::vector<Diagnosis>& all, std::size_t max_of_rule);

}  // namespace assay::report
