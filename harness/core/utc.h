// Moments as text in files: "2026-01-31T12:00:00Z", ISO 8601 in UTC without fractions.
#pragma once

#include <time.h>

#include <cstdio>
#include <ctime>
#include <optional>
#include <string>

namespace assay {

inline std::string utc_text(std::time_t moment) {
  std::tm parts{};
  gmtime_r(&moment, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Absent for any other text.
inline std::optional<std::time_t> parse_utc(const std::string& text) {
  std::tm parts{};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return end && *end == '\0' ? std::optional(timegm(&parts)) : std::nullopt;
}

// "2026-01-31T12:00:00+01:00" or "...12:00:00.25" in UTC without fractions; empty if it is no such time.
inline std::string in_utc(const std::string& text) {
  std::tm parts{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (!rest) rest = strptime(text.c_str(), "%Y-%m-%d %H:%M:%S", &parts);
  if (!rest) return "";
  if (*rest == '.')
    for (++rest; *rest >= '0' && *rest <= '9';) ++rest;
  std::time_t moment = timegm(&parts);
  int hours = 0, minutes = 0;
  if ((*rest == '+' || *rest == '-') && std::sscanf(rest + 1, "%2d:%2d", &hours, &minutes) == 2)
    moment -= (*rest == '-' ? -60 : 60) * (60 * hours + minutes);
  return utc_text(moment);
}

}  // namespace assay
