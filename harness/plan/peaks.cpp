// Measured peaks: from records, over the channel, and back.
#include "harness/plan/peaks.h"

#include "harness/core/error.h"
#include "harness/record/record.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace assay {

std::optional<MeasuredPeak> measured_peak(const Record& record) {
  if (record.family != "peak" || record.status != Status::ok || record.injected()) return std::nullopt;
  const auto metric = std::find_if(record.metrics.begin(), record.metrics.end(),
                                   [](const Metric& m) { return m.name == "throughput" && m.value; });
  const auto isa = record.attribute("isa"), threads = record.attribute("threads");
  if (metric == record.metrics.end() || !isa || !threads) return std::nullopt;
  if (!record.params.is_object() || !record.params.contains("dtype")) return std::nullopt;
  MeasuredPeak peak{record.key,
                    record.params.value("dtype", ""),
                    *isa,
                    record.params.value("isa", "") == "auto",
                    record.world_ranks,
                    0,
                    *metric->value};
  std::from_chars(threads->data(), threads->data() + threads->size(), peak.threads);
  if (peak.threads < 1) return std::nullopt;
  return peak;
}

const MeasuredPeak* find_peak(std::span<const MeasuredPeak> peaks, std::string_view dtype, std::string_view isa,
                              int ranks, int threads) {
  const MeasuredPeak* found = nullptr;
  for (const MeasuredPeak& peak : peaks) {
    if (peak.dtype != dtype || peak.ranks != ranks || peak.threads != threads) continue;
    if (peak.fastest || (peak.isa == isa && (!found || !found->fastest))) found = &peak;
  }
  return found;
}

Json to_json(const MeasuredPeak& peak) {
  return {{"key", peak.key},     {"dtype", peak.dtype},     {"isa", peak.isa},  {"fastest", peak.fastest},
          {"ranks", peak.ranks}, {"threads", peak.threads}, {"rate", peak.rate}};
}

MeasuredPeak peak_from_json(const Json& json) {
  try {
    return {json.at("key"),   json.at("dtype"),   json.at("isa"), json.at("fastest"),
            json.at("ranks"), json.at("threads"), json.at("rate")};
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("a measured peak cannot be read: {}", error.what()));
  }
}

}  // namespace assay
