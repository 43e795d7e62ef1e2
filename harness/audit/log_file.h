// The audit of a kernel's log that somebody sends: what its messages are evidence of, and what the log does not say.
#pragma once

#include "harness/machine/audited.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::audit {

struct AuditedLog {
  struct Unread {
    std::int64_t line = 0;  // from 1
    std::string text;

    static void members(auto& self, auto& io) { io("line", self.line), io("text", self.text); }
  };
  std::string file;
  std::int64_t lines = 0, messages = 0;  // that are not empty; of the kernel
  std::int64_t others = 0, unread = 0;   // lines of other programs; lines of no known form
  std::optional<Unread> first_unread;
  std::int64_t boots = 0;             // of which it has messages
  std::optional<double> first, last;  // the earliest and the latest date, Unix seconds
  std::vector<std::string> unknown;   // what the log does not say, in sentences
  AuditedMachine audit;               // its problems and events

  static void members(auto& self, auto& io) {
    io("file", self.file), io("lines", self.lines), io("messages", self.messages), io("others", self.others);
    io("unread", self.unread), io("first_unread", self.first_unread), io("boots", self.boots);
    io.utc("first", self.first), io.utc("last", self.last), io("unknown", self.unknown);
  }
};

// Reads the file, or stdin for "-", to its end, in any of the forms of LogReader. A fault before the last boot of the
// log, or before the driver said that the GPU has recovered, is only remembered. Throws UsageError if the file cannot
// be read, or is compressed or a journal's own file.
AuditedLog audit_log(const std::string& file, double now_unix_seconds);

}  // namespace assay::audit
