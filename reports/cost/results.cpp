#include "reports/cost/results.h"

#include "harness/json/json.h"
#include "harness/record/series.h"
#include "harness/runs/figures.h"
#include "harness/statistics/statistics.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace assay::report {

namespace {

constexpr double million = 1e6;
constexpr double exa = 1e18;
constexpr double shortest_window = 1;  // seconds; sensors average over about this long

// Seconds for `amount` at a rate; the ends of the interval swap.
std::optional<Result> at_rate(std::string per, double amount, const Metric& rate, double stalls = 1) {
  if (!(*rate.value > 0) || !std::isfinite(*rate.value)) return std::nullopt;
  Result result{std::move(per), stalls * amount / *rate.value, {}};
  if (rate.ci95 && rate.ci95->low > 0 && rate.ci95->high >= rate.ci95->low)
    result.ci95 = Interval{stalls * amount / rate.ci95->high, stalls * amount / rate.ci95->low};
  return std::isfinite(result.seconds) ? std::optional(result) : std::nullopt;
}

std::optional<double> number_label(const Record& record, const char* name) {
  const std::string text = record.attribute(name).value_or("");
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0)) return std::nullopt;
  return value;
}

// Items per epoch in the throughput's unit.
std::optional<double> epoch_items(const Record& record, std::string_view unit) {
  std::optional<double> samples = number_label(record, "epoch_samples");
  if (!samples) samples = number_label(record, "images");
  if (!samples || unit != "tokens/s") return samples;
  std::optional<double> seq = number_label(record, "seq");
  if (!seq) seq = param_number(record, "seq");
  return seq && *seq > 0 ? std::optional(*samples * *seq) : std::nullopt;
}

// Mean over median of repetitions timed one by one: how much longer they took than their median suggests.
double stalls(const Entry& entry) {
  const Record& record = *entry.record;
  if (text_member(record.protocol, "/form") != "repeat") return 1;
  std::vector<double> values = record.samples.values;
  if (record.samples.series) {
    try {
      values = all_samples(*entry.run, record);
    } catch (const MissingSeries&) {  // then the values in the record count
    }
  }
  if (values.empty() || std::ranges::any_of(values, [](double v) { return !(v > 0); })) return 1;
  return mean(values) / median(values);
}

bool is_item_rate(const Metric& metric) {
  return metric.unit.size() > 2 && metric.unit.ends_with("/s") && metric.unit != "B/s" && metric.unit != "FLOP/s" &&
         metric.unit != "OP/s";
}

std::string million_of(const std::string& unit) {
  const std::string item = unit.substr(0, unit.size() - 2);
  return "million " + (item == "img" ? std::string("images") : item);
}

// When sampling began and ended, in seconds since the record's start.
std::optional<Interval> window_of(const Record& record) {
  const Samples& samples = record.samples;
  if (samples.at.empty() || samples.at.size() != samples.values.size()) return std::nullopt;
  const double last = samples.values.back() * static_cast<double>(std::max<std::int64_t>(1, samples.repetitions));
  const Interval window{samples.at.front(), samples.at.back() + last};
  return window.high - window.low >= shortest_window ? std::optional(window) : std::nullopt;
}

// From the counter's difference over the window, or over the part that the series covers if that is at least half.
std::optional<double> counter_watts(const Series& series, const Interval& window) {
  double low = window.low, high = window.high;
  const std::size_t count = std::min(series.at.size(), series.values.size());
  std::optional<double> first, last;
  for (std::size_t i = 0; i < count; ++i) {
    if (!series.values[i]) continue;
    if (!first) first = series.at[i];
    last = series.at[i];
  }
  if (!first) return std::nullopt;
  low = std::max(low, *first);
  high = std::min(high, *last);
  if (high - low < shortest_window || high - low < 0.5 * (window.high - window.low)) return std::nullopt;
  const auto from = value_at(series, low), to = value_at(series, high);
  if (!from || !to || !(*to >= *from)) return std::nullopt;
  return (*to - *from) / (high - low);
}

std::optional<double> mean_in(const Series& series, const Interval& window) {
  double sum = 0;
  int seen = 0;
  for (std::size_t i = 0; i < std::min(series.at.size(), series.values.size()); ++i) {
    if (!series.values[i] || series.at[i] < window.low || series.at[i] > window.high) continue;
    sum += *series.values[i];
    ++seen;
  }
  return seen > 0 ? std::optional(sum / seen) : std::nullopt;
}

std::string sensor_name(std::string_view name, const Record& record) {
  if (name.find("package") != std::string_view::npos || name.find("cpu") != std::string_view::npos)
    return "CPU package energy";
  if (name.find("gpu") != std::string_view::npos || record.device != "cpu") return "GPU energy";
  return "energy (" + std::string(name) + ")";
}

bool of_power(std::string_view name, std::string_view unit) {
  return unit == "W" && name.find("power") != std::string_view::npos && name.find("limit") == std::string_view::npos;
}

bool of_energy(std::string_view name, std::string_view unit) {
  return unit == "J" && name.find("energy") != std::string_view::npos;
}

}  // namespace

std::vector<Result> results_of(const Entry& entry) {
  const Record& record = *entry.record;
  std::vector<Result> results;
  const auto add = [&](std::optional<Result> result) {
    if (result) results.push_back(std::move(*result));
  };
  if (const Metric* time = find_metric(record, "time_to_quality"); time && time->unit == "s" && *time->value > 0) {
    Result result{"run to quality", *time->value, {}};
    if (time->ci95 && time->ci95->low > 0) result.ci95 = time->ci95;
    results.push_back(std::move(result));
  }
  const Metric* throughput = find_metric(record, "throughput");
  if (!throughput) throughput = find_metric(record, "predicted_throughput");  // of a model in slices
  if (record.family == "command") {  // its figure has the name that the command gives it
    throughput = headline_metric(record);
    const Metric* wall = positive_metric(record, "wall_time");
    if (wall && !(throughput && is_item_rate(*throughput))) results.push_back({"run", *wall->value, wall->ci95});
  }
  if (throughput && is_item_rate(*throughput)) {
    add(at_rate(million_of(throughput->unit), million, *throughput));
    if (const auto items = epoch_items(record, throughput->unit)) add(at_rate("epoch", *items, *throughput));
  }
  if (const Metric* flops = find_metric(record, "model_flops"); flops && flops->unit == "FLOP/s") {
    add(at_rate("EFLOP", exa, *flops));
  } else if (throughput && (throughput->unit == "FLOP/s" || throughput->unit == "OP/s") && record.family != "peak") {
    add(at_rate(throughput->unit == "OP/s" ? "EOP" : "EFLOP", exa, *throughput, stalls(entry)));
  }
  return results;
}

std::vector<Power> power_of(const Record& record) {
  std::map<std::string, double> watts;
  const auto window = window_of(record);
  for (const Metric& metric : record.metrics) {
    if (!metric.value || !(*metric.value > 0)) continue;
    if (of_power(metric.name, metric.unit)) watts[sensor_name(metric.name, record)] += *metric.value;
    if (of_energy(metric.name, metric.unit) && window)
      watts[sensor_name(metric.name, record)] += *metric.value / (window->high - window->low);
  }
  if (watts.empty() && window && record.world_nodes == 1) {
    std::map<std::string, int> seen;
    const auto add = [&](const std::string& name, std::optional<double> value) {
      if (!value || !(*value > 0)) return;
      watts[sensor_name(name, record)] += *value;
      ++seen[sensor_name(name, record)];
    };
    for (const auto& [name, series] : record.telemetry)
      if (of_energy(name, series.unit)) add(name, counter_watts(series, *window));
    // Do not count twice: a power series repeats an energy counter, and an instant value its average.
    const auto counted = seen;
    for (const auto& [name, series] : record.telemetry)
      if (of_power(name, series.unit) && !counted.contains(sensor_name(name, record)) && !name.ends_with("_instant"))
        add(name, mean_in(series, *window));
    // Sensors are those of the first rank: one GPU of several says nothing about the others.
    if (const auto found = seen.find("GPU energy"); found != seen.end() && found->second < record.world_ranks)
      watts.erase("GPU energy");
  }
  std::vector<Power> all;
  for (const auto& [sensor, value] : watts) all.push_back({sensor, value});
  return all;
}

}  // namespace assay::report
