// Finished runs in the formats of other tools.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/cost/match.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

struct ExportFormat {
  std::string_view name;     // "prometheus"
  std::string_view summary;  // for --help
  std::string (*text)(const RunSet& runs, const PriceSource& prices);
  // The cases that the format has no place for; null if it takes all.
  std::vector<std::string> (*left_out)(const RunSet& runs) = nullptr;
};

// All formats:
//  prometheus  the text format of node_exporter's textfile collector: the newest figures of each case, in base units
//  csv         a row per record and metric, with what its case costs; `assay import csv` reads it
//  gbench      Google Benchmark's JSON: a repetition per sample, or the time alone, and the aggregates mean, median and
//  stddev bmf         Bencher Metric Format: value and interval of each metric of each case trace       the trace.json
//  of a run directory, gzipped. Throws UsageError for several, or for one without a trace
// Names from records are untrusted: each format escapes them.
std::span<const ExportFormat> export_formats();

}  // namespace assay::report
