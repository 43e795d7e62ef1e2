#include "reports/model/cells.h"

#include "harness/core/units.h"
#include "harness/record/validation.h"
#include "reports/model/words.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

namespace assay::report {

namespace {

// What a reader of the figure must know.
std::string remarks(const Record& record, const Metric* metric) {
  std::vector<std::string> parts;
  if (record.family == "collective" && metric) parts.push_back(metric->name);
  if (!record.samples.disturbed.empty()) parts.push_back(fmt::format("{} disturbed", record.samples.disturbed.size()));
  if (const auto& throttled = record.samples.throttled; throttled && !throttled->empty())
    parts.push_back(fmt::format("{} throttled", throttled->size()));
  for (const std::string& flag : record.flags) parts.push_back(flag);
  if (!record.comparable) parts.push_back("not comparable");
  if (record.labels.contains(unvalidated_label)) parts.push_back(unvalidated_label);
  if (record.attempt > 1) parts.push_back(fmt::format("attempt {}", record.attempt));
  return parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, "; "));
}

// Half the interval as a fraction of the figure; absent if there is none.
std::optional<double> half_share(const Metric* metric) {
  const auto half = metric ? half_width(*metric) : std::nullopt;
  if (!half || !std::isfinite(*half / *metric->value)) return std::nullopt;
  return *half / std::abs(*metric->value);
}

Cell sorted(Cell cell, double by) {
  cell.sort = by;
  return cell;
}

std::string percent(double fraction, std::optional<double> half) {
  if (half) *half *= 100;
  return format_quantity(100 * fraction, "1", half);
}

// States the unit once if both ends share it.
std::string range_text(const std::string& low, const std::string& high) {
  const std::size_t unit = low.find(' ');
  if (unit != std::string::npos && high.ends_with(low.substr(unit))) return low.substr(0, unit) + " – " + high;
  return low + " – " + high;
}

template <typename Text>
Cell ends_cell(const std::optional<Interval>& interval, Text text) {
  // Null would repeat the text (see Cell).
  if (!interval) return {"–", Json::array({nullptr, nullptr}), Tone::faint};
  const double half = 0.5 * (interval->high - interval->low);
  return sorted({range_text(text(interval->low, half), text(interval->high, half)), {interval->low, interval->high}},
                half);
}

}  // namespace

Cell no_cell() { return {"–", nullptr, Tone::faint}; }

Cell unknown_cell() { return {"–", {{"value", nullptr}}, Tone::faint}; }

Cell text_cell(const std::string& text, Tone tone) { return {text, text, tone}; }

Cell count_cell(std::int64_t count, Tone tone) {
  return sorted({std::to_string(count), count, tone}, static_cast<double>(count));
}

std::string quantity_text(const Estimate& estimate, std::string_view unit) {
  return format_quantity(estimate.value, unit, half_width(estimate));
}

Cell quantity_cell(const Estimate& estimate, std::string_view unit) {
  Cell cell{quantity_text(estimate, unit), {{"value", estimate.value}, {"unit", unit}}};
  if (estimate.interval) cell.data["ci95"] = interval_json(estimate.interval);
  return sorted(std::move(cell), estimate.value);
}

Cell interval_cell(const std::optional<Interval>& interval, std::string_view unit) {
  return ends_cell(interval, [&](double end, double half) { return format_quantity(end, unit, half); });
}

Cell share_cell(double fraction) {
  return std::isfinite(fraction) ? sorted({format_percent(fraction), fraction}, fraction) : no_cell();
}

std::string percent_text(const Estimate& fraction) { return percent(fraction.value, half_width(fraction)) + " %"; }

Cell percent_cell(const Estimate& fraction, Tone tone) {
  return sorted({percent_text(fraction), {{"value", fraction.value}, {"unit", "1"}}, tone}, fraction.value);
}

Cell percent_interval_cell(const std::optional<Interval>& interval) {
  return ends_cell(interval, [](double end, double half) { return percent(end, half) + " %"; });
}

Cell case_cell(const Record& record, std::string link) {
  return {case_title(record), record.key, Tone::plain, std::move(link)};
}

Cell figure_cell(const Metric* metric) {
  if (!metric || !metric->value) return no_cell();
  return sorted({figure_text(*metric, *metric->value),
                 {{"metric", metric->name}, {"value", *metric->value}, {"unit", metric->unit}}},
                *metric->value);
}

Cell precision_cell(const Metric* metric) {
  const auto half = half_share(metric);
  if (!half) return no_cell();
  return sorted({precision_text(*half), interval_json(metric->ci95), *half > 0.05 ? Tone::warn : Tone::plain}, *half);
}

Cell reference_cell(const Metric* metric) {
  if (!metric || !metric->value || !metric->reference) return no_cell();
  const std::string normal = format_quantity(*metric->reference, metric->unit);
  const double share = *metric->value / *metric->reference;
  Cell cell{std::isfinite(share) ? fmt::format("{} of {}", format_percent(share), normal) : normal,
            {{"value", *metric->reference}, {"unit", metric->unit}}};
  return std::isfinite(share) ? sorted(std::move(cell), share) : cell;
}

Cell verdict_cell(const Record& record, const Metric* metric) {
  const Json data = {{"status", std::string(name_of(record.status))}, {"reason", record.reason}};
  switch (record.status) {
    case Status::ok:
      if (half_share(metric).value_or(0) > max_usable_half)
        return {"ok, but no usable figure" + remarks(record, metric), data, Tone::warn};
      return {"ok" + remarks(record, metric), data, Tone::good};
    case Status::failed: return {"FAILED" + remarks(record, metric), data, Tone::bad};
    case Status::error: return {"ERROR" + remarks(record, metric), data, Tone::bad};
    case Status::skipped: break;
  }
  return {"skipped: " + first_line(record.reason), data, Tone::faint};
}

}  // namespace assay::report
