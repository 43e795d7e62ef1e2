#include "harness/run/sweep_stops.h"

#include "harness/statistics/knee.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <vector>

namespace assay {

namespace {

constexpr std::string_view parameter = "micro_batch";
constexpr std::int64_t beyond = 4;  // two doublings

struct Point {
  std::string rest;  // of the key, with the ranks
  std::int64_t value = 0;
};

std::optional<Point> point_of(const std::string& key, int ranks) {
  const std::string name = fmt::format("/{}=", parameter);
  const std::size_t at = key.find(name);
  if (at == std::string::npos) return std::nullopt;
  Point point;
  const auto [end, error] = std::from_chars(key.data() + at + name.size(), key.data() + key.size(), point.value);
  if (error != std::errc()) return std::nullopt;
  point.rest = fmt::format("{}{} x {}", key.substr(0, at), end, ranks);
  return point;
}

}  // namespace

void SweepStops::learn(const Record& record) {
  const auto sweep = record.labels.find("sweep");
  if (sweep == record.labels.end() || sweep->second != parameter || record.status != Status::ok) return;
  const auto point = point_of(record.key, record.world_ranks);
  if (!point) return;
  for (const Metric& metric : record.metrics)
    if (metric.name == "throughput" && metric.value) rates_[point->rest][point->value] = metric.value;
}

std::optional<std::string> SweepStops::past(const std::string& key, const std::string& sweep, int ranks) const {
  const auto point = sweep == parameter ? point_of(key, ranks) : std::nullopt;
  const auto known = point ? rates_.find(point->rest) : rates_.end();
  if (known == rates_.end()) return std::nullopt;
  std::vector<std::int64_t> values;
  std::vector<std::optional<double>> rates;
  for (const auto& [value, rate] : known->second) values.push_back(value), rates.push_back(rate);
  const auto knee = knee_of(rates);
  if (!knee || point->value <= beyond * values[*knee]) return std::nullopt;
  return fmt::format("not tried: more than two doublings after the knee of the sweep, {}={}", parameter, values[*knee]);
}

}  // namespace assay
