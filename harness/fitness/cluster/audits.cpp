#include "harness/fitness/cluster/audits.h"

#include "harness/core/plain_text.h"
#include "harness/core/text.h"
#include "harness/json/members.h"
#include "harness/machine/problem_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace assay::fitness {

namespace {

constexpr std::size_t max_text = 2'000;

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

// The document that a host prints, from a line that begins with "{" to the last "}", and into `banner` what stands
// around it. Throws Error if there is none.
Json document_in(std::string_view text, std::string& banner) {
  constexpr int max_tries = 100;
  const auto end = text.rfind('}');
  std::size_t start = 0;
  for (int i = 0; i < max_tries && end != text.npos && start < end; ++i) {
    if (text[start] == '{') {
      try {
        Json document = parse_untrusted(text.substr(start, end + 1 - start));
        auto around = std::string(text.substr(0, start)) + std::string(text.substr(end + 1));
        around.erase(around.find_last_not_of(" \t\r\n") + 1);
        banner = around.empty() ? around : one_line(around, max_text);
        return document;
      } catch (const Error&) {  // a line of a banner
      }
    }
    start = text.find("\n{", start);
    if (start == text.npos) break;
    ++start;
  }
  return parse_untrusted(text);
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
    const Json document = document_in(json, answer.banner);
    const Json& audit = member(document, "/audit");
    if (!audit.is_object()) return no_audit(host, AuditState::error, "its answer holds no audit");
    static_cast<AuditedMachine&>(answer) = read_value<AuditedMachine>(audit);
    answer.expected = member(document, "/expect").is_object();
  } catch (const std::exception& failed) {
    return no_audit(host, AuditState::error, fmt::format("its answer is no audit: {}", reason_of(failed)));
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
  for (std::string& line : answer.bmc) clean(line);
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
    one.tie = std::ranges::count_if(counts, [&](const auto& x) { return x.second == one.count; }) > 1;
    if (!one.tie) one.majority = most->first;
    for (const AuditedHost* host : answered)
      if (auto value = value_on(*host); one.tie || value != one.majority)
        one.hosts.push_back({host->host, std::move(value)});
    drift.push_back(std::move(one));
  }
  return drift;
}

ExitCode AuditedFleet::code() const {
  const bool bad = std::ranges::any_of(
      hosts, [](const AuditedHost& host) { return host.state != AuditState::ok || host.count(Severity::fault) > 0; });
  const bool unread = std::ranges::any_of(hosts, [](const AuditedHost& host) {
    return std::ranges::find(host.problems, expected_unread, &Finding::id) != host.problems.end();
  });
  return bad ? ExitCode::failed : unread ? ExitCode::no_data : ExitCode::ok;
}

}  // namespace assay::fitness
