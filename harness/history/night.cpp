#include "harness/history/night.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"

#include <fmt/format.h>

#include <ctime>

namespace assay::history {

namespace {

constexpr std::time_t day = 86400;

}  // namespace

std::optional<Night> night_of(const std::string& moment) {
  const auto time = parse_utc(moment);
  if (!time) return std::nullopt;
  return static_cast<Night>((*time - (*time % day + day) % day) / day);
}

std::string date_text(Night night) { return utc_text(static_cast<std::time_t>(night) * day).substr(0, 10); }

Night parse_date(const std::string& text, const std::string& place) {
  const auto night = night_of(text + "T00:00:00Z");
  if (!night || date_text(*night) != text)
    throw UsageError(fmt::format("{}: {} is not a date such as 2026-01-31", place, in_quotes(text)));
  return *night;
}

}  // namespace assay::history
