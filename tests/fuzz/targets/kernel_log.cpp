// A kernel's log of any form: whatever it holds, it is counted, and what is printed of it is plain text. It is read as
// a file that somebody sends, and as the logs of a machine.
#include "harness/audit/kernel_log.h"

#include "harness/audit/log_file.h"
#include "harness/json/members.h"
#include "tests/fuzz/fuzz.h"

namespace assay::fuzz {

void kernel_log(std::string_view input) {
  static const MemoryFile file(folder() / "kern.log");
  file.write(input);
  constexpr double now = 1795435200;  // 2026-11-23
  static const Root root(folder() / "logs");
  static const MemoryFile of_syslog(root.path() / "var/log/kern.log"), ring(root.path() / "dev/kmsg");
  of_syslog.write(input);
  ring.write(input.substr(0, input.size() / 2));
  for (const std::optional<double> boot : {std::optional<double>(), std::optional(now - 86400)}) {
    const audit::KernelLog all = audit::read_kernel_log(root, now, 30, boot);
    expect(all.sources.size() + all.empty.size() == 2, "a log that was not read");
    for (const KernelEvent& event : all.events)
      expect(event.count > 0 && (!event.first_seconds || event.first_seconds <= event.unix_seconds),
             "an event of nothing, or a first message after the last");
  }
  audit::AuditedLog log;
  if (!accepts("--log: ", [&] { log = audit::audit_log(file.path(), now); })) return;
  expect(log.messages >= 0 && log.others >= 0 && log.unread >= 0, "a negative count");
  expect(log.messages + log.others + log.unread <= log.lines, "more messages than lines");
  expect(log.messages > 0 || log.audit.events.empty(), "an event without a message");
  expect((log.unread > 0) == log.first_unread.has_value(), "an unread line that is not shown");
  for (const KernelEvent& event : log.audit.events) {
    expect(event.count > 0 && !event.kind.empty(), "an event of nothing");
    for (const char c : event.text + event.device)
      expect(static_cast<unsigned char>(c) >= 0x20, "a control character for the terminal");
    expect(!event.first_seconds || event.first_seconds <= event.unix_seconds, "a first message after the last");
  }
  for (const Finding& problem : log.audit.problems) expect(!problem.seen.empty(), "a problem without evidence");
  (void)dump_line(json_of(log));
  (void)dump_line(json_of(log.audit));
}

}  // namespace assay::fuzz
