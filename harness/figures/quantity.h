// A number and its unit as programs print them for people.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

// What one of a unit is in base units: {1e-3, "s"} for "ms", {1e9, "B/s"} for "GB/s", {0.01, "1"} for "%".
struct BaseUnit {
  double scale = 1;
  std::string name;
};

// Knows durations (ns, us, ms, s, min, h, d, and their names), B, bit (b), FLOP, OP, W, J, Hz, V and A, each with a
// decimal or binary prefix, "%" and "x", and what is per time or per thing: "tokens/s", "ms/step". Absent for other
// words.
std::optional<BaseUnit> base_unit(std::string_view word);

// A value in another unit of the same kind: 2000 for 2, "s", "ms". Absent if the units differ in kind.
std::optional<double> in_unit(double value, const std::string& from, const std::string& to);

// What a text begins with.
struct Quantity {
  double value = 0;                 // finite; in base units if `unit` is one of them
  std::optional<std::string> unit;  // a base unit; absent if no unit that base_unit() knows is there
  std::size_t bytes = 0;            // of the text
};

// "1,234.5 GB/s", "5e-3", "12 %", "1.2M", "2 min 21 s", "0m1.5s", "5.1 ± 0.2 ms" (which is 5.1 ms). Commas, underscores
// and apostrophes may separate thousands. Absent for a text that begins with no number, and for one that is only part
// of something else: "1,5", "12:30:00", "2026-01-31", "3/8", "5abc", "0x1f".
std::optional<Quantity> quantity_at(std::string_view text);

// The number of such a quantity alone, which is the whole word; absent for any other word.
std::optional<double> number_from(std::string_view word);

}  // namespace assay
