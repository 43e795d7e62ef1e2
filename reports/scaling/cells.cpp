#include "reports/scaling/cells.h"

#include "harness/core/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace assay::report::scaling {

namespace {

std::optional<double> half_of(double value, const std::optional<Interval>& interval) {
  if (!interval) return std::nullopt;
  return std::max(interval->high - value, value - interval->low);
}

std::string percent(double share, std::optional<double> half) {
  if (half) *half *= 100;
  return format_quantity(100 * share, "1", half);
}

// The unit is said once where both ends share it.
std::string range_text(const std::string& low, const std::string& high) {
  const std::size_t unit = low.find(' ');
  if (unit != std::string::npos && high.ends_with(low.substr(unit))) return low.substr(0, unit) + " – " + high;
  return low + " – " + high;
}

// Null would repeat the text (see Cell).
Cell unknown_interval() { return {"–", Json::array({nullptr, nullptr}), Tone::faint}; }

}  // namespace

Cell text_cell(const std::string& text, Tone tone) { return {text, text, tone}; }

Cell count_cell(double count) {
  Cell cell{fmt::format("{:.0f}", count), count};
  if (std::abs(count) < 1e15) cell.data = static_cast<std::int64_t>(count);
  cell.sort = count;
  return cell;
}

Cell unknown_cell() { return {"–", {{"value", nullptr}}, Tone::faint}; }

std::string quantity_text(const Estimate& estimate, std::string_view unit) {
  return format_quantity(estimate.value, unit, half_of(estimate.value, estimate.interval));
}

Cell quantity_cell(const Estimate& estimate, std::string_view unit) {
  Cell cell{quantity_text(estimate, unit), {{"value", estimate.value}, {"unit", unit}}};
  if (estimate.interval) cell.data["ci95"] = {estimate.interval->low, estimate.interval->high};
  cell.sort = estimate.value;
  return cell;
}

Cell interval_cell(const std::optional<Interval>& interval, std::string_view unit) {
  if (!interval) return unknown_interval();
  const double half = 0.5 * (interval->high - interval->low);
  Cell cell{range_text(format_quantity(interval->low, unit, half), format_quantity(interval->high, unit, half)),
            {interval->low, interval->high}};
  cell.sort = half;
  return cell;
}

std::string share_text(double share, const std::optional<Interval>& interval) {
  return percent(share, half_of(share, interval)) + " %";
}

Cell share_cell(double share, const std::optional<Interval>& interval, Tone tone) {
  Cell cell{share_text(share, interval), {{"value", share}, {"unit", "1"}}, tone};
  cell.sort = share;
  return cell;
}

Cell share_interval_cell(const std::optional<Interval>& interval) {
  if (!interval) return unknown_interval();
  const double half = 0.5 * (interval->high - interval->low);
  Cell cell{fmt::format("{} – {} %", percent(interval->low, half), percent(interval->high, half)),
            {interval->low, interval->high}};
  cell.sort = half;
  return cell;
}

std::string ranks_text(int ranks) { return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s"); }

}  // namespace assay::report::scaling
