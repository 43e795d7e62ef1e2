// Numbers with units: exact parsing of what people write in files and flags, and human-readable formatting.
// Sizes are formatted in binary units (2 GiB), rates in decimal ones (GB/s = 1e9 B/s, GFLOP/s = 1e9).
#pragma once

#include "harness/core/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

// Parsing. Each throws UsageError with a sentence that quotes the text; spaces may separate a number and its unit.

// "4096", "64MiB", "1.5 GiB", "1GB" (1e9), "8B": a whole number of bytes, exactly, at least 0. Units: B; kB MB GB TB PB
// (powers of 1000); KiB MiB GiB TiB PiB (powers of 1024); case is ignored.
std::int64_t parse_bytes(std::string_view text);
// "30", "30s", "500ms", "20us", "5ns", "2min", "2m", "1h": seconds, finite, at least 0.
double parse_seconds(std::string_view text);
// "0.03" or "3%": 0.03; finite.
double parse_fraction(std::string_view text);
// A decimal integer, nothing else.
std::int64_t parse_integer(std::string_view text);
// A finite decimal number, nothing else.
double parse_real(std::string_view text);

// What `parse`, one of the above, makes of a flag's text; its UsageError then begins with `place`.
template <typename Value>
Value parse_flag(const std::string& place, const std::string& text, Value (*parse)(std::string_view)) {
  try {
    return parse(text);
  } catch (const UsageError& error) {
    throw UsageError(place + ": " + error.what());
  }
}
// A fraction from 0 to less than 1: "3%", "0.03".
double parse_part(const std::string& place, const std::string& text);
// Seconds above 0.
double parse_timeout(const std::string& place, const std::string& text);

// Formatting.

// 8 B, 512 KiB, 1.5 MiB, 2 GiB: binary, three digits.
std::string format_bytes(double bytes);
// 850 ns, 12.3 us, 4.56 ms, 7.89 s, 2 min 21 s, 3 h 5 min.
std::string format_seconds(double seconds);
// A value in a record's unit: 412 GFLOP/s, 41.9 GB/s, 3.1 us (for "s"), 1,024 img/s, 1.24 M tokens/s, 0.97 (for "1"),
// 2 GiB (for "B").
// `half_width` (of its interval, in the same unit) sets the precision: the last digit shown is the first that it
// affects, two to four digits in all; three without it.
std::string format_quantity(double value, std::string_view unit, std::optional<double> half_width = std::nullopt);
// The scale and unit that format_quantity uses for a value, for numbers that share them (an axis, a column):
// {1e9, "GB/s"} for 4.1e10 "B/s"; {1, ""} for "1". A number is shown as value / scale.
struct DisplayUnit {
  double scale = 1;
  std::string name;
};
DisplayUnit display_unit(double value, std::string_view unit);
// "12,345.60": a finite number with `places` decimals and separated thousands.
std::string format_number(double value, int places);
// 0.006 -> "0.6 %".
std::string format_percent(double fraction);

}  // namespace assay
