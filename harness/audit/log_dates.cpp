#include "harness/audit/log_dates.h"

#include "harness/core/text.h"
#include "harness/machine/root.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <string>

namespace assay::audit {

namespace {

constexpr double hour = 3600, day = 24 * hour;

// Digits of a fixed width.
std::optional<int> digits(std::string_view text, std::size_t from, std::size_t count) {
  if (from + count > text.size()) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(from, count)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

std::optional<double> seconds_of(std::tm parts, bool local) {
  parts.tm_isdst = -1;
  const std::time_t moment = local ? std::mktime(&parts) : timegm(&parts);
  return moment == -1 ? std::nullopt : std::optional(static_cast<double>(moment));
}

// "03:12:44" at that place.
bool read_time(std::string_view text, std::size_t from, std::tm& parts) {
  const auto h = digits(text, from, 2), minute = digits(text, from + 3, 2), second = digits(text, from + 6, 2);
  if (!h || !minute || !second || *h > 23 || *minute > 59 || *second > 60) return false;
  parts.tm_hour = *h, parts.tm_min = *minute, parts.tm_sec = *second;
  return text[from + 2] == ':' && text[from + 5] == ':';
}

void skip_fraction(std::string_view& text) {
  if (text.starts_with(".") || text.starts_with(","))
    text.remove_prefix(std::min(text.find_first_not_of("0123456789", 1), text.size()));
}

// Seconds east of UTC, of "Z", "+02:00", "+0200", "+02" at the start of a text, which loses it.
std::optional<double> take_zone(std::string_view& text) {
  if (text.starts_with("Z")) {
    text.remove_prefix(1);
    return 0;
  }
  if (!text.starts_with("+") && !text.starts_with("-")) return std::nullopt;
  const auto hours = digits(text, 1, 2);
  const bool colon = text.substr(0, 4).ends_with(':');
  const auto minutes = digits(text, colon ? 4 : 3, 2);
  if (!hours) return std::nullopt;
  const double seconds = (text[0] == '+' ? 1 : -1) * (*hours * hour + minutes.value_or(0) * 60);
  text.remove_prefix(minutes ? (colon ? 6 : 5) : 3);
  return seconds;
}

bool at_end(std::string_view text) { return text.empty() || text.front() == ' ' || text.front() == '\t'; }

std::optional<LogDate> take_iso(std::string_view& text, const LogDates& how, bool zone_is_a_word) {
  const auto year = digits(text, 0, 4), month = digits(text, 5, 2), date = digits(text, 8, 2);
  std::tm parts{};
  if (!year || !month || !date || *month < 1 || *month > 12 || *date < 1 || *date > 31 || text[4] != '-' ||
      text[7] != '-' || text.size() < 19 || (text[10] != 'T' && text[10] != ' ') || !read_time(text, 11, parts))
    return std::nullopt;
  parts.tm_year = *year - 1900;
  parts.tm_mon = *month - 1;
  parts.tm_mday = *date;
  LogDate found;
  auto rest = text.substr(19);
  found.by_dmesg = rest.starts_with(",");
  skip_fraction(rest);
  auto east = take_zone(rest);
  if (!at_end(rest)) return std::nullopt;
  if (!east && zone_is_a_word) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const auto zone = rest.substr(0, rest.find(' '));
    rest.remove_prefix(zone.size());
    if (zone == "UTC" || zone == "GMT") east = 0;
  }
  const auto moment = seconds_of(parts, how.local && !east);
  if (!moment) return std::nullopt;
  found.unix_seconds = *moment - east.value_or(0);
  found.with_zone = east.has_value();
  text = rest;
  return found;
}

std::optional<LogDate> take_month(std::string_view& text, const LogDates& how) {
  static constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (text.size() < 15) return std::nullopt;
  const auto* const month = std::find(months.begin(), months.end(), text.substr(0, 3));
  const auto date = to_integer(trim(text.substr(4, 2)));
  std::tm parts{};
  if (month == months.end() || !date || *date < 1 || *date > 31 || !read_time(text, 7, parts)) return std::nullopt;
  auto rest = text.substr(15);
  skip_fraction(rest);
  if (!at_end(rest)) return std::nullopt;
  parts.tm_mon = static_cast<int>(month - months.begin());
  parts.tm_mday = static_cast<int>(*date);
  LogDate found;
  // A year may follow: "Nov 20 03:12:44 2026".
  if (const auto year = digits(rest, 1, 4); year && *year >= 1970 && at_end(rest.substr(5))) {
    parts.tm_year = *year - 1900;
    const auto moment = seconds_of(parts, how.local);
    if (!moment) return std::nullopt;
    found.unix_seconds = *moment;
    text = rest.substr(5);
    return found;
  }
  found.with_year = false;
  const auto today = static_cast<std::time_t>(how.now);
  std::tm now{};
  gmtime_r(&today, &now);
  for (int year = now.tm_year + 1; year >= now.tm_year - 1; --year) {
    parts.tm_year = year;
    if (const auto moment = seconds_of(parts, how.local); moment && *moment <= how.now + day) {
      found.unix_seconds = *moment;
      text = rest;
      return found;
    }
  }
  return std::nullopt;
}

std::optional<LogDate> take_unix(std::string_view& text) {
  constexpr std::size_t least = 9;  // digits of seconds since 1970; fewer are an uptime
  const auto word = text.substr(0, text.find(' '));
  if (word.find_first_not_of("0123456789") < least) return std::nullopt;
  const auto moment = word.size() >= least ? decimal(word) : std::nullopt;
  if (!moment) return std::nullopt;
  text.remove_prefix(word.size());
  LogDate found;
  found.unix_seconds = *moment;
  found.with_zone = true;
  return found;
}

}  // namespace

std::optional<double> decimal(std::string_view text) {
  if (text.empty() || text.size() > 20 || text.find_first_not_of("0123456789.") != text.npos) return std::nullopt;
  char* end = nullptr;
  const std::string copy(text);
  const double value = std::strtod(copy.c_str(), &end);
  return end == copy.c_str() + copy.size() ? std::optional(value) : std::nullopt;
}

std::optional<LogDate> take_date(std::string_view& text, const LogDates& how) {
  static constexpr std::array<std::string_view, 7> days = {"Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "};
  auto rest = text;
  const bool named = std::ranges::find(days, text.substr(0, 4)) != days.end();
  if (named) rest.remove_prefix(4);
  if (rest.empty()) return std::nullopt;
  auto found = rest[0] < '0' || rest[0] > '9' ? take_month(rest, how) : take_iso(rest, how, named);
  if (!found && !named) found = take_unix(rest);
  if (!found) return std::nullopt;
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  text = rest;
  return found;
}

}  // namespace assay::audit
