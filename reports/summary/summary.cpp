// Builds the summary Document: headline, a row a case, what needs a reader's attention, the verdict.
#include "reports/summary/summary.h"

#include "reports/data/figures.h"
#include "reports/summary/collective_table.h"
#include "reports/summary/machine_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace assay::report {

namespace {

struct Counts {
  int held = 0;
  int failed = 0;
  int broken = 0;
  int skipped = 0;
  std::map<std::string, int> skip_reasons;
};

Cell median_cell(const Metric* metric) {
  if (!metric) return {"–", nullptr, Tone::faint};
  return {figure_text(*metric, *metric->value),
          {{"metric", metric->name}, {"value", *metric->value}, {"unit", metric->unit}},
          Tone::plain};
}

// Half of the interval as a share of the figure.
Cell interval_cell(const Metric* metric) {
  if (!metric || !metric->ci95 || *metric->value == 0) return {"–", nullptr, Tone::faint};
  const double half = *half_width(*metric) / std::abs(*metric->value);
  const double percent = 100 * half;
  return {fmt::format("± {:.{}f} %", percent, percent < 10 ? 1 : 0), interval_json(metric->ci95),
          half > 0.05 ? Tone::warn : Tone::plain};
}

Cell peak_cell(const Metric* metric) {
  if (metric && metric->of_peak)
    return {fmt::format("{:.0f} %", 100 * *metric->of_peak), *metric->of_peak, Tone::plain};
  if (metric && metric->reference && *metric->reference > 0)
    return {fmt::format("{:.0f} % of ref", 100 * *metric->value / *metric->reference), nullptr, Tone::plain};
  return {"–", nullptr, Tone::faint};
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Remarks that a reader of the figure must see.
std::string remarks(const Record& record, const Metric* metric) {
  std::vector<std::string> parts;
  if (record.family == "collective" && metric) parts.push_back(metric->name);
  if (!record.samples.disturbed.empty()) parts.push_back(fmt::format("{} disturbed", record.samples.disturbed.size()));
  for (const std::string& flag : record.flags) parts.push_back(flag);
  if (!record.comparable) parts.push_back("not comparable");
  if (record.attempt > 1) parts.push_back(fmt::format("attempt {}", record.attempt));
  return parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, "; "));
}

Cell verdict_cell(const Record& record, const Metric* metric) {
  const Json data = {{"status", std::string(name_of(record.status))}, {"reason", record.reason}};
  switch (record.status) {
    case Status::ok: return {"ok" + remarks(record, metric), data, Tone::good};
    case Status::failed: return {"FAILED" + remarks(record, metric), data, Tone::bad};
    case Status::error: return {"ERROR" + remarks(record, metric), data, Tone::bad};
    case Status::skipped: break;
  }
  return {"skipped: " + first_line(record.reason), data, Tone::faint};
}

Json checks_json(const Record& record) {
  Json checks = Json::array();
  for (const Check& check : record.checks) checks.push_back({{"name", check.name}, {"passed", check.passed}});
  return checks;
}

Table case_table(const std::vector<Record>& records) {
  Table table{"cases",
              "",
              {{"case", "case"},
               {"median", "median", Align::right},
               {"ci95", "95 %", Align::right},
               {"of_peak", "of peak", Align::right},
               {"verdict", "verdict"}},
              {}};
  for (const Record& record : records) {
    const Metric* metric = headline_metric(record);
    table.rows.push_back({{case_title(record), record.key, Tone::plain},
                          median_cell(metric),
                          interval_cell(metric),
                          peak_cell(metric),
                          verdict_cell(record, metric)});
  }
  return table;
}

// Every metric of every case, with how it was measured: for files, not for the terminal.
Table metric_table(const std::vector<Record>& records) {
  Table table{"metrics",
              "",
              {{"key", "key"},
               {"ranks", "ranks", Align::right},
               {"metric", "metric"},
               {"value", "value", Align::right},
               {"ci95", "95 % interval", Align::right},
               {"of_peak", "of peak", Align::right},
               {"samples", "samples", Align::right},
               {"stopped_by", "stopped by"},
               {"checks", "checks"}},
              {}};
  for (const Record& record : records) {
    const auto passed =
        std::count_if(record.checks.begin(), record.checks.end(), [](const Check& c) { return c.passed; });
    for (const Metric& metric : record.metrics) {
      if (!metric.value) continue;
      const std::string interval = metric.ci95 ? fmt::format("{} – {}", figure_text(metric, metric.ci95->low),
                                                             figure_text(metric, metric.ci95->high))
                                               : "–";
      table.rows.push_back({{record.key, nullptr},
                            {std::to_string(record.world_ranks), record.world_ranks},
                            {metric.name, nullptr},
                            median_cell(&metric),
                            {interval, interval_json(metric.ci95)},
                            peak_cell(&metric),
                            {std::to_string(record.samples.count), record.samples.count},
                            {record.samples.stopped_by, nullptr},
                            {fmt::format("{} of {} passed", passed, record.checks.size()), checks_json(record)}});
    }
  }
  return table;
}

std::string attention_text(const Record& record) {
  std::string text =
      fmt::format("{} ({} rank{}): ", record.key, record.world_ranks, record.world_ranks == 1 ? "" : "s");
  std::vector<std::string> why;
  for (const Check& check : record.checks) {
    if (check.passed) continue;
    std::string line = "check " + check.name + " failed";
    if (check.value && check.limit) line += fmt::format(": {:.4g} over the limit {:.4g}", *check.value, *check.limit);
    if (!check.detail.empty())
      line += fmt::format(" [{}{}]", check.detail.front(), check.detail.size() > 1 ? ", …" : "");
    why.push_back(line);
  }
  if (why.empty() || record.status == Status::error) why.push_back(first_line(record.reason));
  return text + fmt::format("{}", fmt::join(why, "; "));
}

// What a label says of a case's insides, by case: implementation, instruction set, forms tried.
List label_list(const std::vector<Record>& records) {
  List list{"labels", {}};
  for (const Record& record : records) {
    if (record.labels.empty()) continue;
    std::vector<std::string> parts;
    for (const auto& [name, value] : record.labels) parts.push_back(name + ": " + value);
    list.items.push_back(fmt::format("{} – {}", record.key, fmt::join(parts, "; ")));
  }
  return list;
}

Counts count(const std::vector<Record>& records) {
  Counts counts;
  for (const Record& record : records) {
    switch (record.status) {
      case Status::ok: ++counts.held; break;
      case Status::failed: ++counts.failed; break;
      case Status::error: ++counts.broken; break;
      case Status::skipped: ++counts.skipped; ++counts.skip_reasons[first_line(record.reason)];
    }
  }
  return counts;
}

std::string verdict_line(const Counts& counts) {
  std::string line = fmt::format("held: {} · failed: {}", counts.held, counts.failed);
  if (counts.broken > 0) line += fmt::format(" · broken: {}", counts.broken);
  line += fmt::format(" · skipped: {}", counts.skipped);
  if (counts.skip_reasons.size() == 1) line += fmt::format(" ({})", counts.skip_reasons.begin()->first);
  if (counts.skip_reasons.size() > 1) {
    const auto most = std::max_element(counts.skip_reasons.begin(), counts.skip_reasons.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    line += fmt::format(" ({}; …)", most->first);
  }
  return line;
}

void add_run(Document& document, const RunData& run, const SummaryOptions& options, bool several, Counts& total) {
  const std::vector<Record> records = run.final_records();
  const std::string suffix = several ? " – " + run.dir.filename().string() : "";
  const std::string id = several ? "-" + run.dir.filename().string() : "";
  Section cases{"cases" + id, several ? machine_line(run) : "", {}};
  cases.blocks.push_back(case_table(records));
  document.sections.push_back(std::move(cases));

  List attention{"attention", {}};
  for (const Record& record : records)
    if (record.status == Status::failed || record.status == Status::error)
      attention.items.push_back(attention_text(record));
  for (const std::string& problem : run.problems) attention.items.push_back("unreadable: " + problem);
  if (!attention.items.empty())
    document.sections.push_back({"attention" + id, "What did not hold" + suffix, {std::move(attention)}});

  if (std::string table = collective_table(records); !table.empty())
    document.sections.push_back({"collectives" + id,
                                 "Collectives, in nccl-tests' form" + suffix,
                                 {Verbatim{"nccl-tests", std::move(table)}},
                                 options.nccl_table});

  document.sections.push_back({"metrics" + id, "Every figure" + suffix, {metric_table(records)}, false});
  if (List labels = label_list(records); !labels.items.empty())
    document.sections.push_back({"labels" + id, "How it was done" + suffix, {std::move(labels)}, false});
  if (auto lines = environment_lines(run); !lines.empty())
    document.sections.push_back(
        {"environment" + id, "Environment" + suffix, {List{"environment", std::move(lines)}}, false});

  const Counts counts = count(records);
  total.held += counts.held;
  total.failed += counts.failed;
  total.broken += counts.broken;
  total.skipped += counts.skipped;
  for (const auto& [reason, n] : counts.skip_reasons) total.skip_reasons[reason] += n;
}

}  // namespace

Document summarize_runs(const std::vector<RunData>& runs, const SummaryOptions& options) {
  Document document;
  document.title = "Assay report";
  Counts total;
  for (const RunData& run : runs) add_run(document, run, options, runs.size() > 1, total);
  document.headline = runs.size() == 1 ? machine_line(runs.front()) : fmt::format("{} runs", runs.size());
  document.verdict = verdict_line(total);
  if (!options.footer.empty()) document.verdict += " · " + options.footer;
  document.tone = total.failed + total.broken > 0 ? Tone::bad : Tone::good;
  return document;
}

}  // namespace assay::report
