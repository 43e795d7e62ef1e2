#include "reports/diagnosis/diagnosis.h"

#include "harness/core/configs.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/runs/figures.h"
#include "harness/runs/filled_text.h"
#include "harness/runs/groups.h"
#include "reports/diagnosis/evidence.h"
#include "reports/model/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace assay::report {

namespace {

// How far the number is past the rule's threshold: findings of unlike rules can be ordered by it.
double severity(const RuleResult& finding) {
  // A reason why a training step lacks it says more than that a micro-benchmark is none.
  if (!finding.evidence.number) return finding.entry && is_training(*finding.entry->record) ? 1 : 0;
  return finding.rule->warn > 0 ? finding.evidence.number->value / finding.rule->warn : finding.evidence.number->value;
}

bool worse(const RuleResult& a, const RuleResult& b) {
  return std::pair(a.state, severity(a)) > std::pair(b.state, severity(b));
}

}  // namespace

std::optional<double> RuleResult::ceiling() const {
  if (!evidence.saved || !(*evidence.saved >= 0 && *evidence.saved < 1)) return std::nullopt;
  return 1 / (1 - *evidence.saved);
}

std::string RuleResult::text() const {
  const double value = evidence.number ? evidence.number->value : 0;
  // Ratios are written as such; all other numbers are fractions.
  const std::string number = rule->evidence.ends_with("_ratio") ? fmt::format("{:.2g}", value) : percent_text({value});
  std::string text = rule->says;
  const auto fill = [&](std::string_view name, const std::string& with) {
    if (const auto at = text.find(name); at != std::string::npos) text.replace(at, name.size(), with);
  };
  fill("{value}", number);
  fill("{other}", evidence.other);
  fill("{rank}", evidence.rank.empty() ? "the slowest rank" : evidence.rank);
  return text + evidence.remark;
}

RuleResult judge(const Rule& rule, const Entry& entry, const EvidenceSet& evidence) {
  RuleResult finding{&rule, &entry, RuleState::not_judged, evidence.at(rule.evidence)};
  const auto& number = finding.evidence.number;
  if (!number) return finding;
  if (!rule.unless.empty())
    if (const auto& other = evidence.at(rule.unless).number; other && other->value >= rule.unless_at_least) {
      finding.evidence = {std::nullopt, fmt::format("{} below {}", rule.unless, percent_text({rule.unless_at_least}))};
      return finding;
    }
  const Interval range = number->interval.value_or(Interval{number->value, number->value});
  if (rule.bad && range.low >= *rule.bad)
    finding.state = RuleState::bad;
  else if (range.low >= rule.warn)
    finding.state = RuleState::warn;
  else
    finding.state = range.high < rule.warn ? RuleState::quiet : RuleState::cannot_say;
  return finding;
}

std::vector<Diagnosis> diagnose(const RunSet& runs, const std::vector<Rule>& rules) {
  std::vector<Diagnosis> all;
  const auto of = [&](const std::string& id) -> Diagnosis& {
    const auto found = std::ranges::find(all, id, &Diagnosis::id);
    return found != all.end() ? *found : all.emplace_back(Diagnosis{id, {}, {}});
  };
  for (const Rule& rule : rules)
    if (Diagnosis& diagnosis = of(rule.id); !diagnosis.worst.rule)
      diagnosis.worst = {&rule, nullptr, RuleState::not_judged, {std::nullopt, "a measured case"}};
  const std::vector<MachineRuns>& machines = by_machine(runs);
  for (const MachineRuns& machine : machines)
    for (const CaseRuns& one : machine.cases) {
      const Entry& entry = one.newest();
      if (entry.record->status != Status::ok) continue;
      const EvidenceSet evidence = evidence_of(entry, runs.entries_of(entry.run_index));
      for (const Rule& rule : rules) {
        RuleResult finding = judge(rule, entry, evidence);
        if (machines.size() > 1) finding.machine = machine.name;
        Diagnosis& diagnosis = of(rule.id);
        if (finding.state >= RuleState::warn) diagnosis.fired.push_back(finding);
        if (!diagnosis.worst.entry || worse(finding, diagnosis.worst)) diagnosis.worst = std::move(finding);
      }
    }
  for (Diagnosis& diagnosis : all) std::ranges::stable_sort(diagnosis.fired, worse);
  return all;
}

std::vector<RuleResult> by_gain(const std::vector<Diagnosis>& all, std::size_t max_of_rule) {
  std::vector<RuleResult> fired;
  for (const Diagnosis& one : all)
    fired.insert(fired.end(), one.fired.begin(),
                 one.fired.begin() + static_cast<std::ptrdiff_t>(std::min(one.fired.size(), max_of_rule)));
  const auto gain = [](const RuleResult& finding) { return std::pair(finding.ceiling().value_or(1), finding.state); };
  std::ranges::stable_sort(fired, [&](const RuleResult& a, const RuleResult& b) { return gain(a) > gain(b); });
  return fired;
}

std::string RuleResult::case_text() const {
  return case_title(*entry->record) + (machine.empty() ? "" : " – " + machine);
}

std::string RuleResult::gain_text() const {
  const auto times = ceiling();
  if (!times || *times <= 1) return {};
  return fmt::format("{} {:.3g} x", evidence.at_most ? "at most" : "about", *times);
}

namespace {

constexpr int rules_schema = 1;

Rule read_rule(const Cursor& at) {
  constexpr double max = std::numeric_limits<double>::max();
  Rule rule;
  if (!at.object()) return rule;
  at.only({"id", "evidence", "warn", "bad", "unless", "says", "fix", "source"});
  rule.id = filled_text(at.need("id"));
  if (const auto evidence = at.need("evidence")) rule.evidence = evidence->choice(evidence_names()).value_or("");
  if (const auto warn = at.need("warn")) rule.warn = warn->quantity(parse_fraction, 0, max).value_or(0);
  if (const auto bad = at.find("bad")) {
    rule.bad = bad->quantity(parse_fraction, 0, max);
    if (rule.bad && *rule.bad < rule.warn) bad->error("is below \"warn\"");
  }
  if (const auto unless = at.find("unless"); unless && unless->object()) {
    unless->only({"evidence", "at_least"});
    if (const auto evidence = unless->need("evidence")) rule.unless = evidence->choice(evidence_names()).value_or("");
    if (const auto limit = unless->need("at_least"))
      rule.unless_at_least = limit->quantity(parse_fraction, 0, max).value_or(0);
  }
  const auto says = at.need("says");
  rule.says = filled_text(says);
  if (says && rule.says.find("{value}") == std::string::npos) says->error("does not contain {value}");
  rule.fix = filled_text(at.need("fix"));
  rule.source = filled_text(at.need("source"));
  return rule;
}

}  // namespace

std::vector<Rule> load_rules(const std::filesystem::path& path) {
  return read_strictly(path, rules_schema, {"schema", "description", "rules"}, [](const Cursor& root) {
    root.text_of("description");
    std::vector<Rule> rules;
    if (const auto list = root.need("rules"))
      for (const Cursor& each : list->elements()) rules.push_back(read_rule(each));
    return rules;
  });
}

const std::vector<Rule>& shipped_rules() {
  static const std::vector<Rule> rules = load_rules(find_config("diagnosis", "rules file", "rules"));
  return rules;
}

}  // namespace assay::report
