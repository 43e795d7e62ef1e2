// The lines of a kernel's log in every form in which people have them: what each says, when, and in which boot.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::audit {

// Whether a message is of another boot than the one that stands before it in the log.
enum class BootChange { by_uptime, none, other, first };  // first: it is the first message of its boot

// A message of a log, without what stands before it. Of several lines, which it keeps, if lines that begin with blanks
// follow the first, or if it holds a line's end as kmsg ("\\x0a") or rsyslog ("#012") writes it.
struct LogLine {
  std::optional<double> unix_seconds = {};    // absent: the message is not dated, or by a clock that was not set
  std::optional<double> uptime_seconds = {};  // since its boot
  std::string text = {};
  BootChange boot = BootChange::by_uptime;
};

// How dates are read that lack something.
struct LogDates {
  double now = 0;                   // Unix seconds: a date without a year is the latest that is not after tomorrow
  bool local = false;               // dates without a zone are in this machine's time, else in UTC
  std::optional<double> boot = {};  // Unix seconds of the boot of which messages dated by uptime alone are
};

// What was read so far.
struct LogTally {
  std::int64_t lines = 0;         // that are not empty
  std::int64_t messages = 0;      // of the kernel
  std::int64_t others = 0;        // messages of other programs
  std::int64_t bare = 0;          // lines that would be messages without anything before them
  std::int64_t unread = 0;        // lines of no known form
  std::int64_t first_unread = 0;  // of these two: its number, from 1
  std::string first_unread_text = {};
  std::int64_t undated = 0;       // messages without a date
  std::int64_t unset = 0;         // messages dated before 2010, by a clock that was not set
  std::int64_t without_zone = 0;  // dates without a zone
  std::int64_t without_year = 0;
};

// Reads lines of any of these forms, each by itself, so that they may be mixed:
// - /dev/kmsg ("6,339,5140900,-;message");
// - dmesg: plain, -r, -x, -T, -t, -d, --time-format iso, with callers, in colour;
// - a syslog's file: dates as in RFC 3339, RFC 5424, as Unix seconds, or as "Nov 20 03:12:44";
// - journalctl: short forms and json;
// - pstore, with its headers "Panic#1 Part2".
class LogReader {
 public:
  // `bare`: lines without anything before the message count if no line before them had, as dmesg -t prints them.
  explicit LogReader(LogDates dates, bool bare = false) : dates_(dates), bare_(bare) {}

  // The kernel's messages in whole lines, in their order; what follows is given to the next call.
  std::vector<LogLine> read(std::string_view text);
  const LogTally& tally() const { return tally_; }
  // Whether lines without a form looked like the kernel's, so that the log may be one without times.
  bool looks_like_a_kernel() const { return kernel_like_; }

 private:
  enum class Is { message, other, remark, bare, unread };

  Is read_line(std::string_view line);
  Is read_json_line(std::string_view line);
  Is read_bracketed(std::string_view line);
  Is read_dated(std::string_view line);
  Is read_tagged(std::string_view rest, std::optional<double> moment, bool with_zone);
  Is read_bare(std::string_view line);
  void follow(std::string_view line);
  Is take(std::string_view text, std::optional<double> moment, std::optional<double> uptime);

  LogDates dates_;
  bool bare_;
  LogTally tally_;
  std::vector<LogLine> lines_;
  Is last_ = Is::remark;  // what a line that begins with blanks belongs to
  bool kmsg_ = false;     // the last message was in the form of /dev/kmsg
  bool kernel_like_ = false, monotonic_ = false;
  BootChange next_ = BootChange::by_uptime;
  std::string boot_id_;
  std::int64_t number_ = 0;  // of the line
};

// Hands a log on in pieces that end where a message does, so that a large one need not be held in memory.
class LogPieces {
 public:
  explicit LogPieces(std::function<void(std::string_view)> take) : take_(std::move(take)) {}
  void add(std::string_view bytes);
  void finish();

 private:
  std::function<void(std::string_view)> take_;
  std::string text_;
};

}  // namespace assay::audit
