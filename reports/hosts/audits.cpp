#include "reports/hosts/audits.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/members.h"
#include "reports/hosts/side_by_side.h"
#include "reports/model/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace assay::report {

using namespace fitness;

namespace {

constexpr std::size_t max_listed = 8;  // hosts, problems in a cell

void clean(std::string& text) { text = one_line(text, max_text); }

bool differs_by_nature(const std::string& fact) {
  constexpr std::array<std::string_view, 8> parts = {"hostname", "serial",  "uuid",   "address",
                                                     "guid",     "boot id", "uptime", "machine id"};
  std::string lower = fact;
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c == '_' ? ' ' : c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return std::ranges::any_of(parts, [&](std::string_view part) { return lower.find(part) != lower.npos; });
}

std::string value_text(const std::optional<std::string>& value) { return value ? one_line(*value, 60) : "none"; }

std::string names_text(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), max_listed);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

// "xid-fatal 0000:1b:00.0, no-swap": faults first, as the audit lists them.
std::string problems_text(const AuditedHost& host) {
  std::vector<std::string> names;
  for (const Finding& problem : host.problems)
    if (problem.severity != Severity::info)
      names.push_back(problem.id + (problem.device.empty() ? "" : " " + one_line(problem.device, 40)));
  return names_text(names);
}

Table host_table(const std::vector<AuditedHost>& hosts) {
  Table table{"hosts",
              "",
              {{"host", "host"},
               {"state", "state"},
               {"faults", "faults", Align::right},
               {"warnings", "warnings", Align::right},
               {"problems", "problems"}}};
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
  Table table{"problems",
              "",
              {{"problem", "problem"},
               {"severity", "severity"},
               {"hosts", "hosts"},
               {"seen", "seen"},
               {"meaning", "meaning"},
               {"fix", "fix"}}};
  for (const auto& [key, kind] : kinds)
    table.rows.push_back({{key.second, nullptr},
                          {word_of(kind.first->severity), nullptr, key.first ? Tone::warn : Tone::bad},
                          {names_text(kind.hosts), nullptr},
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
  Table table{"drift", "", {{"fact", "fact"}, {"majority", "most have"}, {"differ", "who differs"}}};
  const bool effects = std::ranges::any_of(drift, [](const Drift& one) { return one.effect.has_value(); });
  if (effects) table.columns.push_back({"effect", "most affected figure"});
  for (const Drift& one : drift) {
    std::vector<std::string> differ;
    for (const auto& host : one.hosts) differ.push_back(fmt::format("{}: {}", host.host, value_text(host.value)));
    table.rows.push_back(
        {{one.fact, nullptr},
         {one.tie ? "no majority" : fmt::format("{} ({})", value_text(one.majority), one.count), nullptr},
         {names_text(differ), nullptr, Tone::warn}});
    if (effects) table.rows.back().push_back({one.effect ? effect_text(*one.effect) : "", nullptr});
  }
  return table;
}

}  // namespace

std::size_t AuditedHost::count(Severity severity) const {
  return static_cast<std::size_t>(std::ranges::count(problems, severity, &Finding::severity));
}

AuditedHost no_audit(const std::string& host, AuditState state, std::string_view why) {
  AuditedHost audited;
  audited.host = host;
  audited.state = state;
  audited.error = one_line(why);
  return audited;
}

AuditedHost read_audit(const std::string& host, std::string_view json) {
  AuditedHost answer;
  answer.host = host;
  try {
    const Json document = parse_untrusted(json);
    const Json& audit = member(document, "/audit");
    if (!audit.is_object()) return no_audit(host, AuditState::error, "its answer holds no audit");
    static_cast<AuditedMachine&>(answer) = read_value<AuditedMachine>(audit);
  } catch (const std::exception& failed) {
    return no_audit(host, AuditState::error, fmt::format("its answer is no audit: {}", failed.what()));
  }
  for (Finding& one : answer.problems) {
    for (std::string* text : {&one.id, &one.device, &one.seen, &one.meaning, &one.fix}) clean(*text);
    one.host = host;
  }
  for (AuditedGpu& one : answer.gpus)
    for (std::string* text : {&one.pci, &one.uuid, &one.name, &one.slot, &one.serial}) clean(*text);
  for (KernelEvent& one : answer.events)
    for (std::string* text : {&one.kind, &one.device, &one.text}) clean(*text);
  for (const auto& [fact, value] : std::exchange(answer.facts, {}))
    answer.facts[one_line(fact)] = one_line(value, max_text);
  answer.serial = one_line(answer.serial.value_or(""));
  if (answer.serial->empty()) answer.serial.reset();
  return answer;
}

std::vector<Drift> drift_of(const std::vector<AuditedHost>& hosts) {
  std::vector<const AuditedHost*> answered;
  std::set<std::string> facts;
  for (const AuditedHost& host : hosts) {
    if (host.state != AuditState::ok) continue;
    answered.push_back(&host);
    for (const auto& [fact, value] : host.facts) facts.insert(fact);
  }
  std::vector<Drift> drift;
  for (const std::string& fact : facts) {
    if (differs_by_nature(fact)) continue;
    const auto value_on = [&](const AuditedHost& host) {
      const auto found = host.facts.find(fact);
      return found == host.facts.end() ? std::nullopt : std::optional(found->second);
    };
    std::map<std::optional<std::string>, std::size_t> counts;
    for (const AuditedHost* host : answered) ++counts[value_on(*host)];
    if (counts.size() < 2) continue;
    const auto most =
        std::ranges::max_element(counts, [](const auto& a, const auto& b) { return a.second < b.second; });
    Drift one;
    one.fact = fact;
    one.count = most->second;
    one.tie = std::ranges::count_if(counts, [&](const auto& each) { return each.second == one.count; }) > 1;
    if (!one.tie) one.majority = most->first;
    for (const AuditedHost* host : answered)
      if (auto value = value_on(*host); one.tie || value != one.majority)
        one.hosts.push_back({host->host, std::move(value)});
    drift.push_back(std::move(one));
  }
  return drift;
}

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
  document.headline =
      fmt::format("{} of {} answered", answered, plural(static_cast<std::int64_t>(hosts.size()), "host"));
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

ExitCode AuditedFleet::code() const {
  const bool bad = std::ranges::any_of(
      hosts, [](const AuditedHost& host) { return host.state != AuditState::ok || host.count(Severity::fault) > 0; });
  return bad ? ExitCode::failed : ExitCode::ok;
}

}  // namespace assay::report
