#include "reports/exchange/export.h"

#include "reports/exchange/formats.h"

#include <array>

namespace assay::report {

std::span<const ExportFormat> export_formats() {
  static constexpr std::array<ExportFormat, 5> formats{{
      {"prometheus", "text for node_exporter's textfile collector", prometheus_text},
      {"csv", "a row per record and metric", csv_text},
      {"gbench", "Google Benchmark's JSON", gbench_text},
      {"bmf", "Bencher Metric Format", bmf_text},
      {"trace", "the Chrome trace of one run, gzipped", trace_text},
  }};
  return formats;
}

}  // namespace assay::report
