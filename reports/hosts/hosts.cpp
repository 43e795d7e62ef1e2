#include "reports/hosts/hosts.h"

#include "harness/core/units.h"
#include "reports/hosts/side_by_side.h"
#include "reports/model/cells.h"
#include "reports/model/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace assay::report {

namespace {

constexpr std::size_t max_named = 20;  // hosts listed in words
constexpr std::size_t max_rows = 5000;
constexpr std::size_t few_hosts = 8;  // fewer are shown side by side

Cell value_cell(const HostCase& one, double value, const std::string& host = "") {
  Cell cell{figure_text(*one.metric, value) + (host.empty() ? "" : ", " + host),
            {{"metric", one.metric->name}, {"value", value}, {"unit", one.metric->unit}}};
  if (!host.empty()) cell.data["host"] = host;
  cell.sort = value;
  return cell;
}

Cell offset_cell(double offset) {
  if (std::abs(offset) < 0.0005) offset = 0;  // no "-0.0 %"
  Cell cell = share_cell(offset);
  if (offset > 0) cell.text.insert(0, "+");
  return cell;
}

std::string score_text(double z) {
  if (!std::isfinite(z)) return z > 0 ? "+inf" : "-inf";
  return fmt::format("{:.1f}", std::abs(z) < 0.05 ? 0 : z);
}

const HostFigure& with_value(const HostCase& one, double value) {
  return *std::ranges::find(one.hosts, value, &HostFigure::value);
}

// "310 GFLOP/s, 25 % below the median of 16 hosts (z -9.1)".
std::string deviation(const HostCase& one, const HostFigure& host) {
  const double middle = one.middle(), share = *host.value / middle - 1;
  const double z = one.statistics->score(*host.value);
  return fmt::format("{}, {} {} the median of {} hosts ({}){}", figure_text(*one.metric, *host.value),
                     format_percent(std::abs(share)), share < 0 ? "below" : "above", one.values.size(),
                     figure_text(*one.metric, middle), std::isfinite(z) ? fmt::format(", z {:.1f}", z) : "");
}

// A line for each host that stands out; the one with most cases first.
std::vector<Block> words(const std::vector<HostCase>& cases) {
  struct Found {
    std::string host;
    std::vector<std::pair<const HostCase*, const HostFigure*>> in;
  };
  std::map<std::string, Found> by_host;
  bool any_statistics = false;
  for (const HostCase& one : cases) {
    any_statistics = any_statistics || one.statistics;
    for (const HostFigure& host : one.hosts)
      if (one.outlier(host)) by_host[host.host].in.emplace_back(&one, &host), by_host[host.host].host = host.host;
  }
  std::vector<Found> found;
  for (auto& [host, one] : by_host) found.push_back(std::move(one));
  std::ranges::sort(found, [](const Found& a, const Found& b) {
    if (a.in.size() != b.in.size()) return a.in.size() > b.in.size();
    return natural_less(a.host, b.host);
  });
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < std::min(found.size(), max_named); ++i) {
    const auto farthest = std::ranges::max_element(found[i].in, [](const auto& a, const auto& b) {
      const auto off = [](const auto& x) { return std::abs(*x.second->value / x.first->middle() - 1); };
      return off(a) < off(b);
    });
    blocks.push_back(Text{
        fmt::format("{} stands out in {}, most of all in {}: {}", found[i].host, plural(found[i].in.size(), "case"),
                    farthest->first->title, deviation(*farthest->first, *farthest->second)),
        Tone::warn});
  }
  if (found.size() > max_named)
    blocks.push_back(Text{plural(found.size() - max_named, "more host") + " stand out.", Tone::warn});
  if (found.empty() && any_statistics) blocks.push_back(Text{"No host stands out.", Tone::good});
  if (!any_statistics)
    blocks.push_back(Text{
        fmt::format("Fewer than {} hosts have figures for a case: too few to identify outliers.", fewest_for_outliers),
        Tone::faint});
  return blocks;
}

std::size_t outliers_of(const HostCase& one) {
  return static_cast<std::size_t>(
      std::ranges::count_if(one.hosts, [&](const HostFigure& host) { return one.outlier(host); }));
}

Table summary(const std::vector<HostCase>& cases) {
  Table table{"hosts",
              "",
              {{"case"},
               right("hosts"),
               right("median", "median host"),
               {"least", "min"},
               {"most", "max"},
               right("spread"),
               right("outliers")},
              {}};
  for (const HostCase& one : cases) {
    if (table.rows.size() >= max_rows) break;
    const double min = one.values.front(), max = one.values.back();
    const std::size_t outliers = outliers_of(one);
    Cell count = one.statistics ? count_cell(outliers, outliers > 0 ? Tone::warn : Tone::plain) : no_cell();
    table.rows.push_back({{one.title, one.hosts.front().newest->record->key},
                          count_cell(one.values.size()),
                          value_cell(one, one.middle()),
                          value_cell(one, min, with_value(one, min).host),
                          value_cell(one, max, with_value(one, max).host),
                          share_cell((max - min) / std::abs(one.middle())),
                          std::move(count)});
  }
  return table;
}

Cell host_cell(const HostCase& one, const HostFigure& host) {
  if (!host.value) {
    const Record& record = *host.newest->record;
    Cell cell = verdict_cell(record, headline_metric(record));
    cell.link = host.newest->anchor();
    return cell;
  }
  Cell cell = value_cell(one, *host.value);
  if (one.outlier(host)) cell.tone = Tone::warn;
  cell.link = host.newest->anchor();
  return cell;
}

Table side_by_side(const std::vector<HostCase>& cases, const std::set<std::string>& names) {
  std::vector<std::string> hosts(names.begin(), names.end());
  std::ranges::sort(hosts, natural_less);
  Table table{"hosts_side_by_side", "Side by side", {{"case"}}, {}};
  for (const std::string& host : hosts) table.columns.push_back(right("host_" + host, host));
  for (const HostCase& one : cases) {
    if (table.rows.size() >= max_rows) break;
    std::vector<Cell> row{{one.title, one.hosts.front().newest->record->key}};
    for (const std::string& name : hosts) {
      const auto found = std::ranges::find(one.hosts, name, &HostFigure::host);
      row.push_back(found == one.hosts.end() ? no_cell() : host_cell(one, *found));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Every host's figure, farthest from the median first.
Section figures(const std::vector<HostCase>& cases) {
  Table table{"host_figures",
              "",
              {{"case"},
               {"host"},
               right("median", "figure"),
               right("ci95", "95 %"),
               right("off", "off the median"),
               right("z", "robust z"),
               right("runs")},
              {}};
  std::size_t left_out = 0;
  for (const HostCase& one : cases) {
    std::vector<const HostFigure*> hosts;
    for (const HostFigure& host : one.hosts) hosts.push_back(&host);
    const double middle = one.middle();
    const auto off = [&](const HostFigure* host) { return host->value ? std::abs(*host->value - middle) : HUGE_VAL; };
    std::ranges::stable_sort(hosts, [&](const HostFigure* a, const HostFigure* b) { return off(a) > off(b); });
    for (const HostFigure* host : hosts) {
      if (table.rows.size() >= max_rows) {
        ++left_out;
        continue;
      }
      const Metric* metric = headline_metric(*host->newest->record);
      Cell z = no_cell();
      if (host->value && one.statistics) {
        const double score = one.statistics->score(*host->value);
        z = {score_text(score), std::isfinite(score) ? Json(score) : Json(nullptr)};
      }
      table.rows.push_back({{one.title, host->newest->record->key},
                            {host->host, nullptr},
                            host_cell(one, *host),
                            host->runs == 1 ? precision_cell(metric) : no_cell(),
                            host->value ? offset_cell(*host->value / middle - 1) : no_cell(),
                            std::move(z),
                            count_cell(host->runs)});
    }
  }
  Section section{"host-figures", "Every host's figures", {std::move(table)}, false};
  if (left_out > 0)
    section.blocks.push_back(
        Text{plural(left_out, "more figure") + " not shown: pass fewer directories to see them.", Tone::warn});
  return section;
}

}  // namespace

std::vector<Section> host_sections(const RunSet& runs) {
  std::vector<HostCase> cases = cases_by_host(runs);
  if (cases.empty()) return {};
  // Cases with outliers first.
  std::stable_partition(cases.begin(), cases.end(), [](const HostCase& one) { return outliers_of(one) > 0; });
  std::set<std::string> names;
  for (const HostCase& one : cases)
    for (const HostFigure& host : one.hosts) names.insert(host.host);
  Section section{"hosts", "Hosts", words(cases)};
  section.blocks.push_back(summary(cases));
  if (names.size() < few_hosts) section.blocks.push_back(side_by_side(cases, names));
  if (cases.size() > max_rows)
    section.blocks.push_back(Text{plural(cases.size() - max_rows, "more case") + " not shown.", Tone::warn});
  return {std::move(section)};
}

std::vector<Section> host_figure_sections(const RunSet& runs) {
  const std::vector<HostCase> cases = cases_by_host(runs);
  if (cases.empty()) return {};
  return {figures(cases)};
}

}  // namespace assay::report
