// The answer of `assay gate` as text, JSON, and lines for other systems.
#include "harness/fitness/gate/answer.h"

#include "harness/core/host.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/members.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace assay::gate {

namespace {

// The figure that is furthest from its floor.
const Figure* worst_figure(const TestOutcome& test) {
  const auto shortfall = [](const Figure& figure) { return figure.repetitions.back().shortfall; };
  const Figure* worst = nullptr;
  for (const Figure& figure : test.figures)
    if (!figure.repetitions.empty() && (!worst || shortfall(figure) > shortfall(*worst))) worst = &figure;
  return worst;
}

TestState state_of(const TestOutcome& test) {
  const bool slow = test.state == TestState::passed &&
                    std::ranges::any_of(test.figures, [](const Figure& figure) { return judge(figure).has_value(); });
  return slow ? TestState::slow : test.state;
}

std::string line_of(const Catalogue& catalogue, const Finding& finding) {
  return fmt::format("{}{}{}{} {}", finding.host.empty() ? "" : finding.host + ": ", catalogue.of(finding.id).code,
                     finding.device.empty() ? "" : " ", finding.device, one_line(finding.seen));
}

std::string test_line(const TestOutcome& test) {
  std::string line = fmt::format("  {:<16} {:<8}", test.device.empty() ? test.test : test.test + " " + test.device,
                                 name_of(state_of(test)));
  if (const Figure* figure = worst_figure(test))
    line += fmt::format(" {} (floor {})", format_quantity(figure->repetitions.back().value, figure->unit),
                        format_quantity(figure->floor, figure->unit));
  else if (test.value)
    line += " " + format_quantity(*test.value, test.unit);
  if (!test.reason.empty()) line += " " + one_line(test.reason);
  return line + "\n";
}

// One line: the verdict's first finding, and how many more there are.
std::string short_text(const Request& request, const Answer& answer) {
  const auto& findings = answer.decision.findings;
  if (answer.decision.verdict == Fitness::pass) return "nothing found";
  const auto weighty =
      std::ranges::count_if(findings, [](const Finding& one) { return one.severity != Severity::info; });
  std::string found = weighty > 0 ? line_of(request.catalogue, findings.front()) : std::string();
  if (weighty > 1) found += fmt::format(" (and {} more)", weighty - 1);
  if (answer.decision.verdict != Fitness::unknown) return found;
  return "not judged: " + one_line(answer.decision.why_not) + (found.empty() ? found : "; " + found);
}

std::string long_text(const Request& request, const Answer& answer) {
  std::string text =
      fmt::format("{}{}{}\n", name_of(answer.decision.verdict, verdict_words),
                  request.inject ? fmt::format(" (injected: {})", request.inject->id) : std::string(),
                  request.observe ? fmt::format(" (observed only: without --observe the exit code is {})",
                                                exit_code(answer.decision.verdict, ExitStyle::assay))
                                  : std::string());
  std::size_t remarks = 0;
  for (const Finding& finding : answer.decision.findings) {
    if (finding.severity == Severity::info && ++remarks) continue;
    text += fmt::format("{} {}\n  {}\n  action: {}\n", finding.severity == Severity::fault ? "FAULT  " : "suspect",
                        line_of(request.catalogue, finding), one_line(finding.meaning),
                        request.catalogue.of(finding.id).action);
  }
  for (const TestOutcome& test : answer.tests) text += test_line(test);
  for (const JobHost& host : answer.hosts)
    text += fmt::format("  {:<16} {}\n", host.host, host.absent ? "absent" : name_of(host.verdict, verdict_words));
  for (const std::string& note : answer.notes) text += "- " + one_line(note) + "\n";
  if (remarks > 0) text += fmt::format("- {} that no job depends on: --json\n", plural(remarks, "remark"));
  if (!answer.past.empty()) text += fmt::format("- {}: {}\n", this_host(), answer.past);
  if (!answer.exclude.empty()) text += fmt::format("exclude: {}\n", fmt::join(answer.exclude, ","));
  return text + fmt::format("{} of {}\n", format_seconds(answer.seconds), format_seconds(request.budget));
}

}  // namespace

int exit_code(Fitness verdict, ExitStyle style) {
  switch (style) {
    case ExitStyle::npd: return npd_code(verdict);
    case ExitStyle::nagios: return nagios_code(verdict);
    case ExitStyle::assay: break;
  }
  return static_cast<int>(verdict == Fitness::unsure ? ExitCode::ok : exit_code(verdict));
}

std::string answer_text(const Request& request, const Answer& answer, ExitStyle style) {
  const std::string observed =
      request.observe ? fmt::format("observed {}: ", name_of(answer.decision.verdict, verdict_words)) : std::string();
  const std::string injected = request.inject ? fmt::format("injected {}: ", request.inject->id) : std::string();
  switch (style) {
    case ExitStyle::assay: break;
    case ExitStyle::npd: return observed + injected + short_text(request, answer) + "\n";
    case ExitStyle::nagios: {
      std::string text = short_text(request, answer);
      std::ranges::replace(text, '|', '/');  // what follows a bar is performance data
      return fmt::format("ASSAY {} - {}{}{} | seconds={:.2f}s;;;0;{:g}\n",
                         name_of(request.observe ? Fitness::pass : answer.decision.verdict, nagios_words), observed,
                         injected, text, answer.seconds, request.budget);
    }
  }
  return long_text(request, answer);
}

std::string answer_json(const Request& request, const Answer& answer) {
  Json findings = Json::array(), tests = Json::array();
  for (const Finding& one : answer.decision.findings) {
    const Code& code = request.catalogue.of(one.id);
    findings.push_back({{"code", code.code},
                        {"id", one.id},
                        {"device", or_null(one.device)},
                        {"text", one.seen},
                        {"meaning", one.meaning},
                        {"action", code.action},
                        {"severity", word_of(one.severity)},
                        {"area", json_of(one.area)}});
    if (!one.host.empty()) findings.back()["host"] = one.host;
  }
  for (const TestOutcome& test : answer.tests) {
    const Figure* figure = worst_figure(test);
    Json row = {{"test", test.test},
                {"name", test.test},  // as it was called before
                {"device", or_null(test.device)},
                {"state", name_of(state_of(test))},
                {"seconds", test.seconds},
                {"figure", nullptr},
                {"unit", or_null(figure ? figure->unit : test.unit)},
                {"floor", nullptr},
                {"repetitions", figure ? figure->repetitions.size() : 0},
                {"reason", or_null(test.reason)}};
    if (figure)
      row["figure"] = figure->repetitions.back().value, row["floor"] = figure->floor;
    else if (test.value)
      row["figure"] = *test.value;
    tests.push_back(std::move(row));
  }
  Json document = {{"schema", 1},
                   {"host", this_host()},
                   {"verdict", name_of(answer.decision.verdict, verdict_words)},
                   {"findings", std::move(findings)},
                   {"seconds", answer.seconds},
                   {"budget", request.budget},
                   {"tests", std::move(tests)},
                   {"notes", answer.notes},
                   {"past", or_null(answer.past)},
                   {"profile", or_null(request.profile)},
                   {"policy", request.policy ? Json(request.policy->file) : Json()},
                   {"observe", request.observe},
                   {"fuse", json_of(answer.fuse)},
                   {"injected", request.inject ? Json(request.inject->id) : Json()}};
  if (!answer.hosts.empty()) {
    document["hosts"] = Json::array();
    for (const JobHost& one : answer.hosts)
      document["hosts"].push_back({{"host", one.host},
                                   {"verdict", one.absent ? Json() : Json(name_of(one.verdict, verdict_words))},
                                   {"own", one.absent ? Json() : Json(name_of(one.own, verdict_words))}});
    document["exclude"] = answer.exclude;
  }
  return dump_document(document);
}

std::string reset_text(const FuseAnswer& was) {
  if (!was.blown)
    return fmt::format("the fuse was whole: {} forgotten\n", plural(static_cast<std::int64_t>(was.drains), "drain"));
  return fmt::format("the fuse is whole again: it had blown at {} on {} ({} drains, at most {} of {} hosts)\n",
                     was.since, was.by, was.drains, was.allowed, was.hosts);
}

std::string reset_json(const FuseAnswer& was) { return dump_document({{"schema", 1}, {"was", json_of(was)}}); }

std::string unknown_text(const std::string& why, ExitStyle style) {
  return (style == ExitStyle::nagios ? "ASSAY UNKNOWN - " : "not judged: ") + one_line(why) + "\n";
}

std::string list_text(const Catalogue& catalogue) {
  std::string text = fmt::format("{:<15} {:<24} {:<8} {:<15} {}\n", "code", "id", "action", "test", "meaning");
  for (const Code& code : catalogue.codes)
    text += fmt::format("{:<15} {:<24} {:<8} {:<15} {}\n", code.code, code.id, code.action, code.test, code.meaning);
  return text;
}

std::string list_json(const Catalogue& catalogue) {
  return dump_document({{"schema", 1}, {"codes", catalogue.codes_json()}});
}

}  // namespace assay::gate
