#include "cli/audit_log.h"

#include "cli/audit_text.h"
#include "harness/audit/log_file.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "harness/json/members.h"

#include <fmt/format.h>

#include <ctime>

namespace assay::cli {

namespace {

// Says how much of the log was read, before its problems.
std::string reading_text(const audit::AuditedLog& log) {
  auto text =
      fmt::format("{}: {} of the kernel in {}", log.file, plural(log.messages, "message"), plural(log.lines, "line"));
  if (log.boots > 1) text += fmt::format(", of {} boots", log.boots);
  if (log.first && log.last)
    text += fmt::format(", {} to {}", utc_text(static_cast<std::time_t>(*log.first)),
                        utc_text(static_cast<std::time_t>(*log.last)));
  text += "\n";
  if (log.first_unread)
    text += fmt::format("  not read: {}, the first in line {}: {}\n", plural(log.unread, "line"),
                        log.first_unread->line, in_quotes(log.first_unread->text, 120));
  for (const std::string& sentence : log.unknown) text += fmt::format("  not known: {}\n", sentence);
  return text;
}

std::string nothing_read(const audit::AuditedLog& log) {
  if (log.lines == 0) return fmt::format("--log: {} is empty", log.file);
  const auto first =
      log.first_unread ? fmt::format("; line {} is {}", log.first_unread->line, in_quotes(log.first_unread->text, 120))
                       : std::string();
  return fmt::format("--log: {} has {}, and none is a message of the kernel{}", log.file, plural(log.lines, "line"),
                     first);
}

}  // namespace

ExitCode audit_log_file(const std::string& file, const Outputs& outputs) {
  const audit::AuditedLog log = audit::audit_log(file, static_cast<double>(std::time(nullptr)));
  outputs.write_json([&] {
    Json document = {{"schema", 1}};
    document["log"] = json_of(log);
    document["audit"] = json_of(log.audit);
    return dump_document(document, 2);
  });
  if (log.messages == 0) throw Error(nothing_read(log), ExitCode::no_data);
  outputs.print(reading_text(log) + audit_text(log.audit, ""));
  return has_fault(log.audit.problems) ? ExitCode::failed : ExitCode::ok;
}

}  // namespace assay::cli
