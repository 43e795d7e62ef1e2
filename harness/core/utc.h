// Moments as text in files: "2026-01-31T12:00:00Z", ISO 8601 in UTC without fractions.
#pragma once

#include <time.h>

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

}  // namespace assay
