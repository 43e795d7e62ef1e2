// The forms in which a kernel's messages stand in logs.
#include "harness/audit/log_lines.h"

#include "harness/audit/areas.h"
#include "harness/audit/kernel_log.h"
#include "harness/audit/log_dates.h"
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/json/json.h"

#include <algorithm>
#include <array>

namespace assay::audit {

namespace {

constexpr std::size_t block_bytes = std::size_t{4} << 20;
constexpr double earliest = 1262304000;  // 2010: a machine's clock that says less was not set

bool blank(char c) { return c == ' ' || c == '\t'; }

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

// With the ends of lines that kmsg and rsyslog write as \x0a and #012.
std::string with_ends_of_lines(std::string_view message) {
  std::string text(message);
  for (const std::string_view end : {"\\x0a", "#012"})
    for (auto at = text.find(end); at != text.npos; at = text.find(end, at)) text.replace(at, end.size(), "\n");
  return text;
}

// Without what colours a terminal: ESC [ ... m.
std::string without_colours(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line.substr(i, 2) != "\x1b[") {
      plain += line[i];
      continue;
    }
    i = std::min(line.find_first_not_of("0123456789;", i + 2), line.size());
  }
  return plain;
}

// "[   12.345678]" at the start: seconds since the boot. The text loses it and a blank.
std::optional<double> take_uptime(std::string_view& text) {
  const auto close = text.starts_with("[") ? text.find(']') : text.npos;
  if (close == text.npos) return std::nullopt;
  const auto uptime = decimal(trim(text.substr(1, close - 1)));
  if (!uptime) return std::nullopt;
  text.remove_prefix(close + 1);
  if (text.starts_with(" ")) text.remove_prefix(1);
  return uptime;
}

// "[  T123] ", the thread or CPU that wrote the message.
void skip_caller(std::string_view& text) {
  const auto close = text.starts_with("[") ? text.find(']') : text.npos;
  if (close == text.npos) return;
  const auto inside = trim(text.substr(1, close - 1));
  if (inside.size() < 2 || (inside[0] != 'T' && inside[0] != 'C') || !to_integer(inside.substr(1)) ||
      inside.find_first_not_of("0123456789", 1) != inside.npos)
    return;
  text.remove_prefix(close + 1);
  if (text.starts_with(" ")) text.remove_prefix(1);
}

// "kern  :info  : " as dmesg -x writes it; the facility, or empty if the text does not begin so.
std::string_view take_facility(std::string_view& text) {
  static constexpr std::array<std::string_view, 12> facilities = {
      "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp"};
  const auto colon = text.substr(0, 16).find(':');
  if (colon == text.npos) return {};
  const auto facility = trim(text.substr(0, colon));
  const auto second = text.find(':', colon + 1);
  const bool known = std::ranges::find(facilities, facility) != facilities.end() || facility.starts_with("local");
  if (!known || second == text.npos || second > colon + 8) return {};
  text = without_blanks(text.substr(second + 1));
  return facility;
}

// "Panic#1 Part2", the first line of a part of a log that pstore kept.
bool begins_part(std::string_view line) {
  const auto mark = line.find('#');
  if (mark == line.npos || mark == 0 || mark > 10 || line.find(" Part") == line.npos) return false;
  return std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(mark),
                     [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }) &&
         line.find_first_not_of("0123456789", mark + 1) == line.find(" Part");
}

// Microseconds as the journal writes them, in seconds.
std::optional<double> microseconds(const Json& entry, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto found = entry.find(name); found != entry.end() && found->is_string())
      if (const auto value = to_integer(found->get_ref<const std::string&>()); value && *value >= 0)
        return static_cast<double>(*value) / 1e6;
  return std::nullopt;
}

// The journal writes bytes that are no text as numbers.
std::optional<std::string> message_of(const Json& entry) {
  const auto found = entry.find("MESSAGE");
  if (found == entry.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  std::string text;
  if (found->is_array())
    for (const Json& byte : *found)
      if (byte.is_number_integer()) text += static_cast<char>(byte.get<std::int64_t>());
  return text;
}

}  // namespace

LogReader::Is LogReader::take(std::string_view text, std::optional<double> moment, std::optional<double> uptime) {
  if (moment && *moment < earliest) {
    moment.reset();
    ++tally_.unset;
  } else if (!moment) {
    ++tally_.undated;
  }
  const BootChange boot =
      next_ == BootChange::by_uptime && text.starts_with("Linux version ") ? BootChange::first : next_;
  next_ = BootChange::by_uptime;
  lines_.push_back({moment, uptime, with_ends_of_lines(text), boot});
  return Is::message;
}

// "host kernel: [   12.345678] message", which a date stands before.
LogReader::Is LogReader::read_tagged(std::string_view rest, std::optional<double> moment, bool with_zone) {
  std::string_view after;
  for (int word = 0; word < 3;
       ++word) {  // the host may be missing, and the facility follow it: "host kern.err kernel:"
    const auto end = std::min(rest.find(' '), rest.size());
    after = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (after == "kernel:") break;
    if (word > 0 && after != "kernel" && !after.starts_with("kern.")) return Is::other;
    if (after == "kernel" && word > 0) {  // RFC 5424: the program, its process, the kind of message, data
      for (int field = 0; field < 3; ++field) {
        const bool data = rest.starts_with("[");
        const auto last = data ? rest.find("] ") : rest.find(' ');
        if (last == rest.npos) return Is::other;
        rest.remove_prefix(last + (data ? 2 : 1));
      }
      after = "kernel:";
      break;
    }
  }
  if (after != "kernel:") return Is::other;
  if (!with_zone) ++tally_.without_zone;
  const auto uptime = take_uptime(rest);
  skip_caller(rest);
  return take(rest, moment, uptime);
}

LogReader::Is LogReader::read_dated(std::string_view line) {
  auto rest = line;
  const auto date = take_date(rest, dates_);
  if (!date) return read_bare(line);
  if (date->by_dmesg) {
    skip_caller(rest);
    return take(rest, date->unix_seconds, std::nullopt);
  }
  const Is is = read_tagged(rest, date->unix_seconds, date->with_zone);
  if (is == Is::message && !date->with_year) ++tally_.without_year;
  return is;
}

// dmesg, or the journal with the time since the boot: "[   12.345678] host kernel: message".
LogReader::Is LogReader::read_bracketed(std::string_view line) {
  auto rest = line;
  if (const auto uptime = take_uptime(rest)) {
    const auto host = rest.find(' ');
    if (host != rest.npos && rest.substr(host + 1).starts_with("kernel: ")) {
      monotonic_ = true;
      rest.remove_prefix(host + 9);
    } else if (monotonic_) {
      return Is::other;
    }
    skip_caller(rest);
    return take(rest, dates_.boot ? std::optional(*dates_.boot + *uptime) : std::nullopt, uptime);
  }
  const auto close = line.find(']');
  if (close == line.npos) return read_bare(line);
  auto inside = line.substr(1, close - 1);
  rest = line.substr(close + 1);
  if (rest.starts_with(" ")) rest.remove_prefix(1);
  skip_caller(rest);
  if (const auto date = take_date(inside, dates_)) {
    ++tally_.without_zone;
    return take(rest, date->unix_seconds, std::nullopt);
  }
  // A time since the message before, "<    0.000003>" or "  +0.000003", and "Nov20 03:12" tell no moment.
  inside = trim(inside);
  if (inside.starts_with("<") || (inside.starts_with("+") && decimal(inside.substr(1))) ||
      (inside.size() == 11 && inside[8] == ':' && inside[5] == ' '))
    return take(rest, std::nullopt, std::nullopt);
  return read_bare(line);
}

LogReader::Is LogReader::read_json_line(std::string_view line) {
  Json entry;
  try {
    entry = parse_untrusted(line);
  } catch (const Error&) {
    return Is::unread;
  }
  const auto message = entry.is_object() ? message_of(entry) : std::nullopt;
  if (!message) return Is::unread;
  const auto transport = text_member(entry, "/_TRANSPORT");
  if (transport != "kernel" && !(transport.empty() && text_member(entry, "/SYSLOG_IDENTIFIER") == "kernel"))
    return Is::other;
  const auto boot = text_member(entry, "/_BOOT_ID");
  if (!boot.empty()) next_ = boot_id_.empty() || boot == boot_id_ ? BootChange::none : BootChange::other;
  if (!boot.empty()) boot_id_ = boot;
  return take(*message, microseconds(entry, {"_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP"}),
              microseconds(entry, {"_SOURCE_MONOTONIC_TIMESTAMP", "__MONOTONIC_TIMESTAMP"}));
}

// A message of which only the text is there.
LogReader::Is LogReader::read_bare(std::string_view line) {
  // A syslog that does not escape ends of lines leaves the others of a message so.
  if (last_ == Is::message && !lines_.empty())
    if (const auto speaker = speaker_of(line); !speaker.empty() && lines_.back().text.starts_with(speaker)) {
      follow(line);
      return Is::message;
    }
  if (!bare_ || tally_.messages > 0 || tally_.others > 0) return Is::unread;
  const bool known = std::ranges::any_of(
      std::to_array<std::string_view>({"Linux version ", "Command line: ", "Kernel command line: ", "NVRM: ",
                                       "BIOS-provided ", "ACPI: ", "systemd[1]: ", "usb ", "EXT4-fs ", "XFS ("}),
      [&](std::string_view start) { return line.starts_with(start); });
  if (known || !last_pci_address(line).empty() || !parse_kernel_message(line).empty()) kernel_like_ = true;
  lines_.push_back({{}, {}, std::string(line), BootChange::by_uptime});
  return Is::bare;
}

void LogReader::follow(std::string_view line) {
  // " SUBSYSTEM=pci" says something about a record of kmsg, but is no line of it.
  const auto name = std::min(line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), line.size());
  const bool property = kmsg_ && name > 0 && name < line.size() && line[name] == '=';
  if (!property && !lines_.empty()) lines_.back().text.append("\n").append(line);
}

LogReader::Is LogReader::read_line(std::string_view line) {
  kmsg_ = false;
  if (line.starts_with("-- ")) {  // of journalctl: "-- Boot 1f2e --", "-- Reboot --", "-- No entries --"
    if (line.starts_with("-- Boot ") || line.starts_with("-- Reboot")) next_ = BootChange::other;
    return Is::remark;
  }
  if (begins_part(line)) {  // parts may stand the newest first
    next_ = BootChange::none;
    return Is::remark;
  }
  if (line.starts_with("\x1e")) line.remove_prefix(1);
  if (line.starts_with("data: {")) line.remove_prefix(6);
  if (line.starts_with("{")) return read_json_line(line);
  if (const auto close = line.find('>');
      line.starts_with("<") && close != line.npos && close < 5 && to_integer(line.substr(1, close - 1))) {
    line = without_blanks(line.substr(close + 1));
    if (line.starts_with("1 ")) line.remove_prefix(2);  // the version of RFC 5424
  }
  if (const auto facility = take_facility(line); !facility.empty() && facility != "kern") return Is::other;
  if (line.starts_with("[")) return read_bracketed(line);
  const bool number = !line.empty() && line[0] >= '0' && line[0] <= '9';
  if (const auto semicolon = number ? line.find(';') : line.npos; semicolon != line.npos) {
    const auto fields = split_commas(line.substr(0, std::min<std::size_t>(semicolon, 80)));
    const auto elapsed = fields.size() >= 3 ? to_integer(fields[2]) : std::nullopt;
    if (elapsed && *elapsed >= 0 && to_integer(fields[0]) && to_integer(fields[1])) {
      kmsg_ = true;
      const double uptime = static_cast<double>(*elapsed) / 1e6;
      return take(line.substr(semicolon + 1), dates_.boot ? std::optional(*dates_.boot + uptime) : std::nullopt,
                  uptime);
    }
  }
  return read_dated(line);
}

std::vector<LogLine> LogReader::read(std::string_view text) {
  lines_.clear();
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string plain;
    if (line.find('\x1b') != line.npos) line = plain = without_colours(line);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    ++number_;
    if (trim(line).empty()) continue;
    ++tally_.lines;
    // What begins with blanks goes on with the message before, of whatever program.
    const bool follows = blank(line.front()) && last_ != Is::unread;
    if (follows) {
      if (last_ == Is::message || last_ == Is::bare) follow(trim(line));
      continue;
    }
    const auto before = lines_.size();
    last_ = read_line(line);
    if (last_ == Is::message) tally_.messages += static_cast<std::int64_t>(lines_.size() - before);
    if (last_ == Is::other) ++tally_.others;
    if (last_ == Is::bare) ++tally_.bare;
    if (last_ == Is::unread) ++tally_.unread;
    if ((last_ == Is::bare || last_ == Is::unread) && tally_.first_unread == 0) {
      tally_.first_unread = number_;
      tally_.first_unread_text = one_line(line, 120);
    }
  }
  return std::move(lines_);
}

void LogPieces::add(std::string_view bytes) {
  text_ += bytes;
  if (text_.size() < block_bytes) return;
  for (std::size_t end = text_.size(); (end = text_.rfind('\n', end - 1)) != text_.npos && end > 0;)
    if (end + 1 < text_.size() && !blank(text_[end + 1])) {
      take_(std::string_view(text_).substr(0, end + 1));
      text_.erase(0, end + 1);
      break;
    }
  if (text_.size() > 4 * block_bytes) finish();  // a line without an end
}

void LogPieces::finish() {
  take_(text_);
  text_.clear();
}

}  // namespace assay::audit
