#include "reports/exchange/export.h"

#include "reports/exchange/formats.h"

#include <fmt/format.h>

#include <array>

namespace assay::report {

namespace {

// "KEY: status, reason" of the cases whose newest record is not ok.
std::vector<std::string> cases_without_figure(const RunSet& runs) {
  std::vector<std::string> cases;
  each_newest(runs, [&](const MachineRuns&, const Entry& entry) {
    const Record& record = *entry.record;
    if (record.status != Status::ok)
      cases.push_back(fmt::format("{}: {}, {}", record.key, name_of(record.status), record.reason));
  });
  return cases;
}

template <std::string (*text)(const RunSet& runs)>
std::string unpriced(const RunSet& runs, const PriceSource&) {
  return text(runs);
}

}  // namespace

std::span<const ExportFormat> export_formats() {
  static constexpr std::array<ExportFormat, 5> formats{{
      {"prometheus", "text for node_exporter's textfile collector", unpriced<prometheus_text>},
      {"csv", "a row per record and metric, with the cost of its case", csv_text},
      {"gbench", "Google Benchmark's JSON", unpriced<gbench_text>, cases_without_time},
      {"bmf", "Bencher Metric Format", unpriced<bmf_text>, cases_without_figure},
      {"trace", "the Chrome trace of one run, gzipped", unpriced<trace_text>},
  }};
  return formats;
}

}  // namespace assay::report
