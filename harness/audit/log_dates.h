// Dates as logs write them.
#pragma once

#include "harness/audit/log_lines.h"

#include <optional>
#include <string_view>

namespace assay::audit {

struct LogDate {
  double unix_seconds = 0;
  bool with_zone = false, with_year = true;
  bool by_dmesg = false;  // "2026-11-20T03:12:44,123456+00:00": the message follows at once
};

// The date at the start of `text`, which loses it and the blanks after it; absent, and the text as it was, if there is
// none:
// - "2026-11-20T03:12:44.123456+00:00", "2026-11-20 03:12:44"; a fraction and a zone may be missing;
// - "1763608364.5", Unix seconds;
// - "Nov 20 03:12:44", also with a fraction and a year;
// - the name of a day and one of these, as in "Thu Nov 20 03:12:44 2026" and "Thu 2026-11-20 03:12:44 UTC".
std::optional<LogDate> take_date(std::string_view& text, const LogDates& how);

// A number of digits and points, nothing else.
std::optional<double> decimal(std::string_view text);

}  // namespace assay::audit
