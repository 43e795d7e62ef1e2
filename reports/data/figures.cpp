#include "reports/data/figures.h"

#include "harness/core/units.h"

#include <algorithm>
#include <cstdint>

namespace assay::report {

// Messages up to here are bound by latency: bandwidth says little about them.
static constexpr std::int64_t small_message_bytes = 32 << 10;

const Metric* headline_metric(const Record& record) {
  const Json bytes = record.params.is_object() ? record.params.value("bytes", Json()) : Json();
  const bool small = record.family == "collective" && bytes.is_number_integer() && bytes <= small_message_bytes;
  for (const Metric& metric : record.metrics)
    if (metric.value && (!small || metric.name == "latency")) return &metric;
  return nullptr;
}

const Metric* find_metric(const Record& record, std::string_view name) {
  for (const Metric& metric : record.metrics)
    if (metric.name == name && metric.value) return &metric;
  return nullptr;
}

std::optional<double> half_width(const Metric& metric) {
  if (!metric.ci95 || !metric.value) return std::nullopt;
  return std::max(metric.ci95->high - *metric.value, *metric.value - metric.ci95->low);
}

std::string figure_text(const Metric& metric, double value) {
  return format_quantity(value, metric.unit, half_width(metric));
}

Json interval_json(const std::optional<Interval>& interval) {
  return interval ? Json{interval->low, interval->high} : Json(nullptr);
}

}  // namespace assay::report
