#include "reports/diagnosis/rules.h"

#include "harness/core/configs.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/runs/filled_text.h"
#include "reports/diagnosis/evidence.h"

#include <limits>

namespace assay::report {

namespace {

constexpr int rules_schema = 1;

Rule read_rule(const Cursor& at) {
  static const std::vector<std::string> names = {"id", "evidence", "warn", "bad", "unless", "says", "fix", "source"};
  constexpr double max = std::numeric_limits<double>::max();
  Rule rule;
  if (!at.object()) return rule;
  at.only(names);
  rule.id = filled_text(at.need("id"));
  if (const auto evidence = at.need("evidence")) rule.evidence = evidence->choice(evidence_names()).value_or("");
  if (const auto warn = at.need("warn")) rule.warn = warn->quantity(parse_fraction, 0, max).value_or(0);
  if (const auto bad = at.find("bad")) {
    rule.bad = bad->quantity(parse_fraction, 0, max);
    if (rule.bad && *rule.bad < rule.warn) bad->error("is below \"warn\"");
  }
  if (const auto unless = at.find("unless"); unless && unless->object()) {
    static const std::vector<std::string> members = {"evidence", "at_least"};
    unless->only(members);
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
  static const std::vector<std::string> names = {"schema", "description", "rules"};
  const Json json = read_json(path);
  Problems problems(path.string());
  const Cursor root(json, problems);
  if (!root.object() || !root.schema(rules_schema)) problems.raise();
  root.only(names);
  if (const auto description = root.find("description")) description->text();
  std::vector<Rule> rules;
  if (const auto list = root.need("rules"))
    for (const Cursor& each : list->elements()) rules.push_back(read_rule(each));
  problems.raise();
  return rules;
}

const std::vector<Rule>& shipped_rules() {
  static const std::vector<Rule> rules = load_rules(find_config("diagnosis", "rules file", "rules"));
  return rules;
}

}  // namespace assay::report
