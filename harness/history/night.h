// Nights: the days by which a history counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace assay::history {

using Night = std::int32_t;  // days since 1970-01-01, UTC

// The night of a moment such as "2026-01-31T12:00:00Z"; absent for any other text.
std::optional<Night> night_of(const std::string& moment);
// "2026-01-31".
std::string date_text(Night night);
// Throws UsageError with `place` for other text.
Night parse_date(const std::string& text, const std::string& place);

}  // namespace assay::history
