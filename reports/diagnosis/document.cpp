#include "reports/diagnosis/document.h"

#include "harness/json/json.h"
#include "reports/model/cells.h"
#include "reports/summary/verdict.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace assay::report {

namespace {

Tone tone_of(RuleState state) {
  switch (state) {
    case RuleState::bad: return Tone::bad;
    case RuleState::warn: return Tone::warn;
    case RuleState::quiet: return Tone::good;
    default: return Tone::faint;
  }
}

Json evidence_json(const RuleResult& finding) {
  const Estimate& number = *finding.evidence.number;
  return {{"case", finding.entry->record->key},
          {"name", finding.rule->evidence},
          {"value", number.value},
          {"low", number.interval ? Json(number.interval->low) : Json()},
          {"high", number.interval ? Json(number.interval->high) : Json()},
          {"state", name_of(finding.state)},
          {"text", finding.text()}};
}

// The cause costs its part of the price of the case's machines per hour.
std::optional<double> usd_per_hour(const RuleResult& finding, const PriceSource& prices) {
  if (!finding.entry || !finding.evidence.saved) return std::nullopt;
  const MachinePrices known = prices_of(*finding.entry->run, prices);
  if (known.offers.empty() || !known.offers.front().usd) return std::nullopt;
  return *known.offers.front().usd * finding.entry->record->world_nodes * *finding.evidence.saved;
}

std::vector<std::string> ids_in(const std::vector<Diagnosis>& all, RuleState state) {
  std::vector<std::string> ids;
  for (const Diagnosis& one : all)
    if (one.worst.state == state)
      ids.push_back(state == RuleState::not_judged ? fmt::format("{} (needs {})", one.id, one.worst.evidence.needs)
                                                   : one.id);
  return ids;
}

}  // namespace

std::vector<Section> diagnosis_sections(const std::vector<Diagnosis>& all, const PriceSource& prices) {
  constexpr std::size_t max_rows = 5;  // of a rule
  Section section{"diagnosis", "What to change", {}};
  Table table{"diagnosis",
              "",
              {{"rule"},
               {"state"},
               {"case"},
               {"evidence", "what was seen"},
               right("ceiling", "gain"),
               right("usd_per_hour", "costs")}};
  bool priced = false;
  List fixes{"fixes", {}};
  std::set<std::string> named;
  for (const RuleResult& finding : by_gain(all, max_rows)) {
    const auto ceiling = finding.ceiling(), usd = usd_per_hour(finding, prices);
    priced = priced || usd;
    table.rows.push_back(
        {text_cell(finding.rule->id),
         text_cell(std::string(name_of(finding.state)), tone_of(finding.state)),
         {finding.case_text(), finding.entry->record->key, Tone::plain, finding.entry->anchor()},
         text_cell(finding.text()),
         ceiling ? Cell{fmt::format("{} {:.3g} x", finding.evidence.at_most ? "at most" : "about", *ceiling), *ceiling}
                 : no_cell(),
         usd ? Cell{fmt::format("about {:.2f} USD/h", *usd), *usd} : no_cell()});
    if (named.insert(finding.rule->id).second)
      fixes.items.push_back(fmt::format("{}: {}.", finding.rule->id, finding.rule->fix));
  }
  if (!priced) {
    table.columns.pop_back();
    for (auto& row : table.rows) row.pop_back();
  }
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  if (!fixes.items.empty()) section.blocks.push_back(std::move(fixes));
  const auto say = [&](RuleState state, const char* what) {
    if (const auto ids = ids_in(all, state); !ids.empty())
      section.blocks.push_back(Text{fmt::format("{}: {}.", what, fmt::join(ids, ", ")), Tone::faint});
  };
  say(RuleState::quiet, "Judged, and not the cause");
  say(RuleState::cannot_say, "Too noisy to say");
  say(RuleState::not_judged, "Not judged");
  return {std::move(section)};
}

Document diagnosis_document(const RunSet& runs, const std::vector<Diagnosis>& all, const PriceSource& prices) {
  Document document{"Assay diagnosis", verdict_of(runs).headline, "", Tone::good, diagnosis_sections(all, prices)};
  std::int64_t bad = 0, warn = 0, judged = 0;
  for (const Diagnosis& one : all) {
    bad += one.worst.state == RuleState::bad ? 1 : 0;
    warn += one.worst.state == RuleState::warn ? 1 : 0;
    judged += one.worst.state != RuleState::not_judged ? 1 : 0;
  }
  document.verdict = fmt::format("bad: {} · warnings: {} · judged: {} of {}", bad, warn, judged, all.size());
  document.tone = bad > 0 ? Tone::bad : warn > 0 ? Tone::warn : judged > 0 ? Tone::good : Tone::plain;
  return document;
}

Json diagnosis_json(const std::vector<Diagnosis>& all, const PriceSource& prices) {
  Json rules = Json::array();
  for (const Diagnosis& one : all) {
    Json evidence = Json::array();
    for (const RuleResult& finding : one.fired) evidence.push_back(evidence_json(finding));
    if (evidence.empty() && one.worst.entry && one.worst.evidence.number) evidence.push_back(evidence_json(one.worst));
    const auto ceiling = one.worst.ceiling(), usd = usd_per_hour(one.worst, prices);
    rules.push_back({{"id", one.id},
                     {"state", name_of(one.worst.state)},
                     {"needs", one.worst.state == RuleState::not_judged ? Json(one.worst.evidence.needs) : Json()},
                     {"evidence", std::move(evidence)},
                     {"ceiling", or_null(ceiling)},
                     {"usd_per_hour", or_null(usd)},
                     {"fix", one.worst.rule->fix},
                     {"source", one.worst.rule->source}});
  }
  return {{"schema", 1}, {"rules", std::move(rules)}};
}

ExitCode exit_code_of(const std::vector<Diagnosis>& all, std::optional<RuleState> fail_on) {
  bool judged = false, unsure = false;
  for (const Diagnosis& one : all) {
    if (fail_on && one.worst.state >= *fail_on) return ExitCode::failed;
    judged = judged || one.worst.state != RuleState::not_judged;
    unsure = unsure || (fail_on && one.worst.state == RuleState::cannot_say);
  }
  return judged && !unsure ? ExitCode::ok : ExitCode::no_data;
}

}  // namespace assay::report
