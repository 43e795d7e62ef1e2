#include "harness/record/peaks.h"

#include "harness/core/whole_number.h"
#include "harness/record/record.h"

#include <algorithm>

namespace assay {

std::optional<MeasuredPeak> measured_peak(const Record& record) {
  if (record.family != "peak" || record.status != Status::ok || record.injected()) return std::nullopt;
  const auto metric = std::ranges::find_if(
      record.metrics, [](const Metric& m) { return m.name == "throughput" && m.value && *m.value > 0; });
  const auto isa = record.attribute("isa"), threads = record.attribute("threads");
  if (metric == record.metrics.end() || !isa || !threads) return std::nullopt;
  if (!record.params.is_object() || !record.params.contains("dtype")) return std::nullopt;
  MeasuredPeak peak{record.key,
                    record.params.value("dtype", ""),
                    *isa,
                    record.params.value("isa", "") == "auto",
                    record.world_ranks,
                    whole_number<int>(*threads).value_or(0),
                    *metric->value};
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

}  // namespace assay
