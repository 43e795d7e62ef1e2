// Bencher Metric Format (https://bencher.dev/docs/reference/bencher-metric-format).
#include "harness/json/json.h"
#include "harness/runs/figures.h"
#include "reports/exchange/formats.h"
#include "reports/render/escape.h"
#include "reports/render/render.h"

#include <cmath>

namespace assay::report {

std::string bmf_text(const RunSet& runs) {
  Json all = Json::object();
  each_newest(runs, [&](const MachineRuns&, const Entry& entry) {
    const Record& record = *entry.record;
    if (record.status != Status::ok || !record.comparable) return;
    for (const Metric& metric : record.metrics) {
      if (!metric.value || !std::isfinite(*metric.value)) continue;
      Json value = {{"value", *metric.value}};
      if (metric.ci95) value.update({{"lower_value", metric.ci95->low}, {"upper_value", metric.ci95->high}});
      all[printable(record.key)][printable(metric.name)] = std::move(value);
    }
  });
  return dump_document(all);
}

}  // namespace assay::report
