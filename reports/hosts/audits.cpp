#include "reports/hosts/audits.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/words.h"
#include "harness/statistics/statistics.h"
#include "reports/hosts/side_by_side.h"
#include "reports/model/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace assay::report {

using namespace fitness;

namespace {

constexpr std::size_t max_listed = 8;  // hosts, problems in a cell

std::string value_text(const std::optional<std::string>& value) { return value ? one_line(*value, 60) : "none"; }

// "xid-fatal 0000:1b:00.0, no-swap": faults first, as the audit lists them.
std::string problems_text(const AuditedHost& host) {
  std::vector<std::string> names;
  for (const Finding& problem : host.problems)
    if (problem.severity != Severity::info)
      names.push_back(problem.id + (problem.device.empty() ? "" : " " + one_line(problem.device, 40)));
  return first_few(names, max_listed);
}

Table host_table(const std::vector<AuditedHost>& hosts) {
  Table table{"hosts", "", {{"host"}, {"state"}, right("faults"), right("warnings"), {"problems"}}, {}};
  for (const AuditedHost& host : hosts) {
    const bool ok = host.state == AuditState::ok;
    const std::size_t faults = host.count(Severity::fault), warnings = host.count(Severity::warning);
    const auto number = [&](std::size_t n, Tone tone) {
      return ok ? Cell{std::to_string(n), n, n > 0 ? tone : Tone::plain} : Cell{"-", nullptr, Tone::faint};
    };
    table.rows.push_back({{host.host, nullptr},
                          {word_of(host.state), nullptr, ok ? Tone::plain : Tone::bad},
                          number(faults, Tone::bad),
                          number(warnings, Tone::warn),
                          {ok ? problems_text(host) : host.error, nullptr}});
  }
  return table;
}

// Every problem once, with the hosts that have it.
Table problem_table(const std::vector<AuditedHost>& hosts) {
  struct Kind {
    const Finding* first = nullptr;
    std::vector<std::string> hosts;
  };
  std::map<std::pair<bool, std::string>, Kind> kinds;  // faults first
  for (const AuditedHost& host : hosts)
    for (const Finding& problem : host.problems) {
      if (problem.severity == Severity::info) continue;
      Kind& kind = kinds[{problem.severity != Severity::fault, problem.id}];
      if (!kind.first) kind.first = &problem;
      if (kind.hosts.empty() || kind.hosts.back() != host.host) kind.hosts.push_back(host.host);
    }
  Table table{"problems", "", {{"problem"}, {"severity"}, {"hosts"}, {"seen"}, {"meaning"}, {"fix"}}, {}};
  for (const auto& [key, kind] : kinds)
    table.rows.push_back({{key.second, nullptr},
                          {word_of(kind.first->severity), nullptr, key.first ? Tone::warn : Tone::bad},
                          {first_few(kind.hosts, max_listed), nullptr},
                          {kind.first->seen, nullptr},
                          {kind.first->meaning, nullptr},
                          {kind.first->fix, nullptr}});
  return table;
}

std::string effect_text(const DriftEffect& effect) {
  return fmt::format("{} {}: {:.3g} times the others' median ({} of {} hosts)", effect.title, effect.metric,
                     effect.ratio, effect.differing, effect.differing + effect.others);
}

Table drift_table(const std::vector<Drift>& drift) {
  Table table{"drift", "", {{"fact"}, {"majority", "most have"}, {"differ", "who differs"}}, {}};
  const bool effects = std::ranges::any_of(drift, [](const Drift& one) { return one.effect.has_value(); });
  if (effects) table.columns.push_back({"effect", "most affected figure"});
  for (const Drift& one : drift) {
    std::vector<std::string> differ;
    for (const auto& host : one.hosts) differ.push_back(fmt::format("{}: {}", host.host, value_text(host.value)));
    table.rows.push_back(
        {{one.fact, nullptr},
         {one.tie ? "no majority" : fmt::format("{} ({})", value_text(one.majority), one.count), nullptr},
         {first_few(differ, max_listed), nullptr, Tone::warn}});
    if (effects) table.rows.back().push_back({one.effect ? effect_text(*one.effect) : "", nullptr});
  }
  return table;
}

}  // namespace

void add_effects(std::vector<Drift>& drift, const RunSet& runs) {
  const std::vector<HostCase> cases = cases_by_host(runs);
  for (Drift& one : drift) {
    if (one.tie) continue;
    std::set<std::string> differing;
    for (const auto& host : one.hosts) differing.insert(host.host);
    for (const HostCase& measured : cases) {
      std::vector<double> own, others;
      for (const HostFigure& host : measured.hosts)
        if (host.value && *host.value > 0) (differing.contains(host.host) ? own : others).push_back(*host.value);
      if (own.empty() || others.empty()) continue;
      const DriftEffect effect{measured.title, measured.metric->name, median(own) / median(others), own.size(),
                               others.size()};
      if (!one.effect || std::abs(std::log(effect.ratio)) > std::abs(std::log(one.effect->ratio))) one.effect = effect;
    }
  }
}

Document audit_document(const AuditedFleet& fleet) {
  const auto& [schema, error, hosts, drift] = fleet;
  std::size_t answered = 0, faulty = 0;
  for (const AuditedHost& host : hosts) {
    if (host.state == AuditState::ok) ++answered;
    if (host.count(Severity::fault) > 0) ++faulty;
  }
  Document document;
  document.title = "Audit of hosts";
  document.headline = fmt::format("{} of {} answered", answered, plural(hosts.size(), "host"));
  document.verdict = fmt::format("with faults: {} · without: {} · not audited: {} · facts that differ: {}", faulty,
                                 answered - faulty, hosts.size() - answered, drift.size());
  document.tone = fleet.code() != ExitCode::ok ? Tone::bad : drift.empty() ? Tone::good : Tone::warn;
  document.sections.push_back({"hosts", "Hosts", {host_table(hosts)}});
  if (Table problems = problem_table(hosts); !problems.rows.empty())
    document.sections.push_back({"problems", "Problems", {std::move(problems)}});
  Section printed{"printed", "Printed beside the answers", {}};
  for (const auto& host : hosts)
    if (!host.banner.empty())
      printed.blocks.emplace_back(Text{fmt::format("{}: {}", host.host, one_line(host.banner))});
  if (!printed.blocks.empty()) document.sections.push_back(std::move(printed));
  if (!drift.empty())
    document.sections.push_back({"drift", "Where hosts differ", {drift_table(drift)}});
  else if (answered > 1)
    document.sections.push_back(
        {"drift", "Where hosts differ", {Text{"In no fact that they should share.", Tone::good}}});
  return document;
}

}  // namespace assay::report
