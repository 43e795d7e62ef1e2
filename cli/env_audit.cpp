// Prints the audit of one machine.
#include "cli/env_audit.h"

#include "harness/audit/log_file.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "harness/core/words.h"
#include "harness/json/members.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace assay::cli {

namespace {

// `before_device`: what stands between a finding's id and its device.
void print_findings(const std::vector<Finding>& findings, std::string_view before_device) {
  for (const Finding& one : findings) {
    fmt::print("  {:<7}  {}{}{}: {}\n", word_of(one.severity), one.id, one.device.empty() ? "" : before_device,
               one.device, one.seen);
    fmt::print("           so: {}\n           fix: {}\n", one.meaning, one.fix);
  }
}

void print_events(const std::vector<KernelEvent>& events, std::string_view when) {
  std::int64_t messages = 0;
  for (const auto& event : events) messages += event.count;
  fmt::print("\n{} of the kernel{}\n", plural(messages, "message"), when);
  for (const auto& event : events) {
    const auto last = event.unix_seconds     ? utc_text(static_cast<std::time_t>(*event.unix_seconds))
                      : event.uptime_seconds ? fmt::format("{:.0f} s after its boot", *event.uptime_seconds)
                                             : "time unknown";
    fmt::print("  {:<9} {}{}{} x, last {}: {}\n", event.kind, event.device, event.device.empty() ? "" : ", ",
               event.count, last, event.text);
  }
}

// What stands before the problems of a log: what of it was read.
void print_log(const audit::AuditedLog& log) {
  fmt::print("{}: {} of the kernel in {}", log.file, plural(log.messages, "message"), plural(log.lines, "line"));
  if (log.boots > 1) fmt::print(", of {} boots", log.boots);
  if (log.first && log.last)
    fmt::print(", {} to {}", utc_text(static_cast<std::time_t>(*log.first)),
               utc_text(static_cast<std::time_t>(*log.last)));
  fmt::print("\n");
  if (log.first_unread)
    fmt::print("  not read: {}, the first in line {}: {}\n", plural(log.unread, "line"), log.first_unread->line,
               in_quotes(log.first_unread->text, 120));
  for (const std::string& sentence : log.unknown) fmt::print("  not known: {}\n", sentence);
}

}  // namespace

ExitCode audit_log_file(const std::string& file, bool json) {
  const audit::AuditedLog log = audit::audit_log(file, static_cast<double>(std::time(nullptr)));
  if (json) {
    Json document = {{"schema", 1}};
    document["log"] = json_of(log);
    document["audit"] = json_of(log.audit);
    fmt::print("{}", dump_document(document, 2));
  } else if (log.messages > 0) {
    print_log(log);
    print_audit(log.audit, "");
  }
  if (log.messages == 0) {
    const auto what = log.lines == 0
                          ? std::string("is empty")
                          : fmt::format("has {}, and none is a message of the kernel{}", plural(log.lines, "line"),
                                        log.first_unread ? fmt::format("; line {} is {}", log.first_unread->line,
                                                                       in_quotes(log.first_unread->text, 120))
                                                         : std::string());
    throw Error(fmt::format("--log: {} {}", log.file, what), ExitCode::no_data);
  }
  return has_fault(log.audit.problems) ? ExitCode::failed : ExitCode::ok;
}

audit::Audit audit_now(const Root& root) { return audit::audit_machine(root, static_cast<double>(std::time(nullptr))); }

void print_audit(const AuditedMachine& audit, std::string_view when) {
  const auto count = [&](Severity severity) {
    return std::ranges::count(audit.problems, severity, &Finding::severity);
  };
  fmt::print("\naudit: {}, {}, {}\n", plural(count(Severity::fault), "fault"),
             plural(count(Severity::warning), "warning"), plural(count(Severity::info), "remark"));
  print_findings(audit.problems, " ");
  if (!audit.events.empty()) print_events(audit.events, when);
}

void print_spoilers(const std::vector<Finding>& findings) {
  if (findings.empty()) return fmt::print("\nnothing here is known to spoil measurements\n");
  fmt::print("\n{} finding{}: what will spoil measurements\n", findings.size(), findings.size() == 1 ? "" : "s");
  print_findings(findings, ": ");
}

}  // namespace assay::cli
