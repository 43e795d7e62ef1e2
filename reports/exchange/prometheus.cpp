// The newest figures and findings of runs as Prometheus' gauges.
#include "harness/core/utc.h"
#include "harness/json/json.h"
#include "reports/diagnosis/diagnosis.h"
#include "reports/exchange/formats.h"
#include "reports/exchange/gauges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace assay::report {

namespace {

// "throughput" in "FLOP/s": "assay_throughput_flop_per_second". Names may hold letters, digits and '_'.
std::string metric_name(const Metric& metric) {
  static const std::map<std::string_view, std::string_view> units = {{"s", "seconds"}, {"B", "bytes"}, {"Hz", "hertz"},
                                                                     {"J", "joules"},  {"W", "watts"}, {"1", "ratio"}};
  const auto words_of = [&](std::string_view unit) -> std::string {
    const auto known = units.find(unit);
    return std::string(known == units.end() ? unit : known->second);
  };
  std::string unit = metric.unit;
  if (const auto slash = unit.find('/'); slash != std::string::npos) {
    const std::string below = unit.substr(slash + 1);
    unit = words_of(unit.substr(0, slash)) + "_per_" + (below == "s" ? "second" : words_of(below));
  } else {
    unit = words_of(unit);
  }
  // A metric may be named by its unit ("planned_bytes" in B).
  const bool has_unit = metric.name == unit || metric.name.ends_with("_" + unit);
  std::string name = "assay_" + metric.name + (has_unit || unit.empty() ? "" : "_" + unit);
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) c = '_';
  }
  return name;
}

std::string case_labels(const Record& record) {
  return prometheus_labels({{"case", record.key},
                            {"device", record.device},
                            {"ranks", std::to_string(record.world_ranks)},
                            {"host", host_of(record)}});
}

}  // namespace

std::string prometheus_text(const RunSet& runs) {
  PrometheusGauges gauges;
  std::set<std::string> hosts;
  each_newest(runs, [&](const MachineRuns&, const Entry& entry) {
    const Record& record = *entry.record;
    const std::string labels = case_labels(record);
    if (record.status == Status::skipped) return;
    hosts.insert(host_of(record));
    // What was not checked, and did not break either, is not known to be right.
    if (!record.checks.empty() || record.status != Status::ok)
      gauges.set("assay_case_ok", labels, record.status == Status::ok ? 1 : 0, "Whether the case's answer was right.");
    if (record.status == Status::ok && record.comparable)
      for (const Metric& metric : record.metrics)
        if (metric.value && std::isfinite(*metric.value))
          gauges.set(metric_name(metric), labels, *metric.value, "A figure of assay, the newest of each case.");
    if (const auto when = parse_utc(text_member(entry.run->run, "/started")))
      gauges.set("assay_run_timestamp_seconds", prometheus_labels({{"host", host_of(record)}}),
                 static_cast<double>(*when), "When the newest run started.");
  });
  for (const Diagnosis& one : diagnose(runs, shipped_rules()))
    for (const std::string& host : hosts) {
      double worst = 0;
      for (const RuleResult& fired : one.fired)
        if (host_of(*fired.entry->record) == host) worst = std::max(worst, fired.state == RuleState::bad ? 2.0 : 1.0);
      gauges.set("assay_finding", prometheus_labels({{"rule", one.id}, {"host", host}}), worst,
                 "A rule of diagnosis: 2 is bad, 1 a warning, 0 neither.");
    }
  return gauges.text();
}

}  // namespace assay::report
