// Table cells of scaling figures: text for people, base units for machines.
#pragma once

#include "reports/model/document.h"
#include "reports/scaling/estimate.h"

#include <optional>
#include <string>
#include <string_view>

namespace assay::report::scaling {

Cell text_cell(const std::string& text, Tone tone = Tone::plain);
Cell count_cell(double count);
// "–": a figure that is not known; null for machines.
Cell unknown_cell();
// {"value", "unit"} and, where it is known, "ci95"; with the digits that the interval allows.
Cell quantity_cell(const Estimate& estimate, std::string_view unit);
// "0.52 – 0.57 ms" as [low, high].
Cell interval_cell(const std::optional<Interval>& interval, std::string_view unit);
// A share as "93.1 %"; data is the fraction.
Cell share_cell(double share, const std::optional<Interval>& interval = std::nullopt, Tone tone = Tone::plain);
Cell share_interval_cell(const std::optional<Interval>& interval);

std::string quantity_text(const Estimate& estimate, std::string_view unit);
std::string share_text(double share, const std::optional<Interval>& interval = std::nullopt);
std::string ranks_text(int ranks);  // "1 rank", "4 ranks"

}  // namespace assay::report::scaling
