// Moments as other programs write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay {

struct Moment {
  std::string utc;    // "2026-01-31T11:00:00Z"
  bool zone = false;  // whether the text names one; without it `utc` is the local time as it stands
};

// Reads "2026-01-31T12:00:00.25+01:00" and its relatives: a blank or "T", "/" in the date, no seconds or no time at
// all, "Z", "UTC", "+0100", "+01" or no zone; also seconds or milliseconds since 1970. Absent for any other text, and
// for a day or an hour that does not exist.
std::optional<Moment> read_moment(std::string_view text);

}  // namespace assay
