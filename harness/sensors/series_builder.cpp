// Series of bounded length.
#include "harness/sensors/series_builder.h"

namespace assay {
namespace {

double united(double a, double b) {
  return static_cast<double>(static_cast<std::uint64_t>(a) | static_cast<std::uint64_t>(b));
}

}  // namespace

void SeriesBuilder::add(double seconds, const Reading& reading) {
  auto found = all_.find(reading.name);
  if (found == all_.end()) {
    if (!reading.value) return;  // a sensor that never answers is absent
    found = all_.emplace(std::string(reading.name), Growing{}).first;
    found->second.series.unit = reading.unit;
    found->second.kind = reading.kind;
  }
  auto& growing = found->second;
  growing.pending_at = seconds;
  if (reading.value) {
    growing.pending_sum += *reading.value;
    ++growing.pending_values;
    growing.pending_last = growing.kind == Reading::Kind::mask && growing.pending_last
                               ? std::optional(united(*growing.pending_last, *reading.value))
                               : reading.value;
  }
  if (++growing.pending == growing.stride) finish_point(growing);
}

void SeriesBuilder::finish_point(Growing& growing) {
  growing.series.at.push_back(growing.pending_at);
  if (growing.kind == Reading::Kind::rate && growing.pending_values > 0)
    growing.series.values.emplace_back(growing.pending_sum / static_cast<double>(growing.pending_values));
  else
    growing.series.values.push_back(growing.pending_last);
  growing.pending = 0;
  growing.pending_sum = 0;
  growing.pending_values = 0;
  growing.pending_last.reset();
  if (growing.series.at.size() >= max_points_) halve(growing);
}

void SeriesBuilder::halve(Growing& growing) {
  auto& at = growing.series.at;
  auto& values = growing.series.values;
  const auto half = at.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    const auto first = values[2 * i], second = values[2 * i + 1];
    at[i] = at[2 * i + 1];
    if (first && second)
      values[i] = growing.kind == Reading::Kind::rate   ? (*first + *second) / 2
                  : growing.kind == Reading::Kind::mask ? united(*first, *second)
                                                        : *second;
    else
      values[i] = second ? second : first;
  }
  at.resize(half);
  values.resize(half);
  growing.stride *= 2;
}

std::map<std::string, Series> SeriesBuilder::take() {
  std::map<std::string, Series> series;
  for (auto& [name, growing] : all_) {
    if (growing.pending > 0) finish_point(growing);
    series.emplace(name, std::move(growing.series));
  }
  all_.clear();
  return series;
}

}  // namespace assay
