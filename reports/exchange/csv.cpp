// Comma-separated values (RFC 4180).
#include "harness/runs/csv.h"
#include "harness/core/text.h"
#include "harness/json/json.h"
#include "harness/runs/machine.h"
#include "reports/cost/cost.h"
#include "reports/exchange/formats.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

namespace assay::report {

namespace {

constexpr const char* csv_header =
    "time,machine,case,metric,unit,better,value,low,high,of_peak,commit,device,ranks,host,status,comparable,reason,"
    "usd,usd_per,price_basis,price_date\r\n";

std::string number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

}  // namespace

std::string csv_text(const RunSet& runs, const PriceSource& prices) {
  std::string out = csv_header;
  std::map<const RunData*, MachinePrices> known;  // looked up once per run
  for (const RunData& run : runs.runs()) known.emplace(&run, prices_of(run, prices));
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    const std::vector<Cost> costs = costs_of(entry, known.at(entry.run));
    const Cost* cost = costs.empty() ? nullptr : &costs.front();
    const auto row = [&](const Metric* metric) {
      const bool interval = metric && metric->ci95;
      out +=
          fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\r\n", csv_cell(record.started),
                      csv_cell(machine_of(*entry.run).name), csv_cell(record.key), metric ? csv_cell(metric->name) : "",
                      metric ? csv_cell(metric->unit) : "", metric ? word_of(metric->better) : "",
                      metric ? number(metric->value) : "", interval ? number(metric->ci95->low) : "",
                      interval ? number(metric->ci95->high) : "", metric ? number(metric->of_peak) : "",
                      csv_cell(text_member(entry.run->run, "/git/commit")), csv_cell(record.device), record.world_ranks,
                      csv_cell(host_of(record)), name_of(record.status), record.comparable,
                      csv_cell(one_line(record.reason)), cost ? number(cost->usd) : "", cost ? csv_cell(cost->per) : "",
                      cost ? name_of(cost->price.basis) : "", cost ? csv_cell(cost->price.date) : "");
    };
    if (record.metrics.empty()) row(nullptr);
    for (const Metric& metric : record.metrics) row(&metric);
  }
  return out;
}

}  // namespace assay::report
