#include "harness/runs/figures.h"

#include "harness/core/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

namespace assay {

// Messages up to this size are latency-bound; their bandwidth says little.
static constexpr double small_message_bytes = 32 << 10;

std::string param_text(const Record& record, std::string_view name) {
  if (record.params.is_object()) {
    const auto found = record.params.find(std::string(name));
    if (found != record.params.end() && found->is_string()) return found->get<std::string>();
    if (found != record.params.end() && !found->is_null())
      return found->dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  for (std::string_view rest = record.key; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    if (part.size() > name.size() && part.starts_with(name) && part[name.size()] == '=')
      return std::string(part.substr(name.size() + 1));
  }
  return {};
}

std::optional<double> param_number(const Record& record, std::string_view name) {
  const std::string text = param_text(record, name);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool is_training(const Record& record) {
  if (record.family == "resnet" || record.family == "transformer" || record.family == "llama") return true;
  return step_metric(record) || find_metric(record, "time_to_quality");
}

const Metric* headline_metric(const Record& record) {
  const auto bytes = record.family == "collective" ? param_number(record, "bytes") : std::nullopt;
  const bool small = bytes && *bytes <= small_message_bytes;
  for (const Metric& metric : record.metrics)
    if (metric.value && (!small || metric.unit == "s")) return &metric;
  return nullptr;
}

const Metric* find_metric(const Record& record, std::string_view name) {
  for (const Metric& metric : record.metrics)
    if (metric.name == name && metric.value) return &metric;
  return nullptr;
}

const Metric* positive_metric(const Record& record, std::string_view name) {
  const Metric* metric = find_metric(record, name);
  return metric && std::isfinite(*metric->value) && *metric->value > 0 ? metric : nullptr;
}

const Metric* step_metric(const Record& record) {
  const Metric* measured = find_metric(record, "step_time");
  return measured ? measured : find_metric(record, "predicted_step_time");
}

std::optional<double> span_of(const Record& record, std::string_view name) {
  for (const auto& [span, seconds] : record.spans)
    if (span == name) return seconds;
  return std::nullopt;
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

}  // namespace assay
