// Table cells that all reports share: text for people, base units for machines.
#pragma once

#include "harness/runs/figures.h"
#include "reports/model/document.h"
#include "reports/model/estimate.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::report {

// A dash: nothing to show.
Cell no_cell();
// A dash with the data {"value": null}: a figure that is unknown.
Cell unknown_cell();
Cell text_cell(const std::string& text, Tone tone = Tone::plain);
Cell count_cell(std::int64_t count, Tone tone = Tone::plain);

// The digits that the interval allows; data is {"value", "unit"}, plus "ci95" if there is an interval.
std::string quantity_text(const Estimate& estimate, std::string_view unit);
Cell quantity_cell(const Estimate& estimate, std::string_view unit);
// "0.52 – 0.57 ms"; data is [low, high].
Cell interval_cell(const std::optional<Interval>& interval, std::string_view unit);

// "93 %"; data is the fraction. A dash unless it is finite.
Cell share_cell(double fraction);
// "93.1 %", with the digits that the interval allows; data is {"value", "unit"}.
std::string percent_text(const Estimate& fraction);
Cell percent_cell(const Estimate& fraction, Tone tone = Tone::plain);
// "91.8 – 94.4 %"; data is [low, high].
Cell percent_interval_cell(const std::optional<Interval>& interval);

// The title of a case; data is its key. `link`: see Cell.
Cell case_cell(const Record& record, std::string link = {});
// "412 GFLOP/s"; data is {"metric", "value", "unit"}. Null gives a dash, here and below.
Cell figure_cell(const Metric* metric);
// "± 0.7 %": half the interval as a fraction of the figure; data is [low, high].
Cell precision_cell(const Metric* metric);
// "103 % of 41 GB/s".
Cell reference_cell(const Metric* metric);
// "ok (2 disturbed)", "FAILED", "skipped: no GPU".
Cell verdict_cell(const Record& record, const Metric* metric);

}  // namespace assay::report
