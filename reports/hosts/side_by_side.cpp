#include "reports/hosts/side_by_side.h"

#include "harness/runs/figures.h"
#include "harness/runs/machine_kind.h"
#include "harness/statistics/statistics.h"
#include "reports/hosts/hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <utility>

namespace assay::report {

namespace {

struct NaturalLess {
  bool operator()(const std::string& a, const std::string& b) const { return natural_less(a, b); }
};

struct CaseGroup {
  std::map<std::string, std::vector<const Entry*>, NaturalLess> hosts;
  std::string kind;  // of machine, where there are several
};

const Metric* figure_of(const Entry& entry) {
  const Record& record = *entry.record;
  if (record.status != Status::ok || !record.comparable || injected(record)) return nullptr;
  const Metric* metric = headline_metric(record);
  return metric && std::isfinite(*metric->value) ? metric : nullptr;
}

HostCase case_of(const CaseGroup& group) {
  HostCase one;
  for (const auto& [host, entries] : group.hosts) {
    HostFigure figure{host, entries.back(), 0, {}};
    std::vector<double> values;
    for (const Entry* entry : entries) {
      const Metric* metric = figure_of(*entry);
      if (!metric) continue;
      if (!one.metric) {
        one.metric = metric;
        one.title = case_title(*entry->record) + (group.kind.empty() ? "" : " · " + group.kind);
      }
      if (metric->name == one.metric->name && metric->unit == one.metric->unit) values.push_back(*metric->value);
    }
    figure.runs = values.size();
    if (!values.empty()) one.values.push_back(*(figure.value = median(values)));
    one.hosts.push_back(std::move(figure));
  }
  std::ranges::sort(one.values);
  if (one.values.size() >= static_cast<std::size_t>(fewest_for_outliers)) one.statistics = robust(one.values);
  return one;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    const auto number = [&](std::string_view text, std::size_t& at) {
      while (at < text.size() && text[at] == '0') ++at;
      const std::size_t start = at;
      while (at < text.size() && digit(text[at])) ++at;
      return text.substr(start, at - start);
    };
    const std::string_view x = number(a, i), y = number(b, j);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  if (i < a.size() || j < b.size()) return j < b.size() && i == a.size();
  return a < b;  // "n01" and "n1"
}

double HostCase::middle() const { return median(values); }

bool HostCase::outlier(const HostFigure& one) const {
  return one.value && statistics && is_outlier(*one.value, *statistics);
}

std::vector<HostCase> cases_by_host(const RunSet& runs) {
  std::vector<CaseGroup> groups;
  std::map<std::string, std::size_t> places;
  // Hosts of different kinds are no samples of one figure.
  const std::vector<MachineKind> kinds = machine_kinds(runs.runs());
  const std::vector<std::size_t> kind_of = kind_by_run(kinds, runs.runs().size());
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    const std::vector<std::string> hosts = record.identity().hosts;
    if (hosts.size() != 1) continue;
    const auto [place, fresh] =
        places.try_emplace(fmt::format("{}\n{}\n{}\n{}\n{}\n{}", kind_of[entry.run_index], record.key, record.device,
                                       record.world_ranks, record.world_nodes, record.seed),
                           groups.size());
    if (fresh) groups.push_back({{}, kinds.size() > 1 ? kinds[kind_of[entry.run_index]].name : ""});
    groups[place->second].hosts[hosts.front()].push_back(&entry);
  }
  std::vector<HostCase> cases;
  for (CaseGroup& group : groups) {
    if (group.hosts.size() < 2) continue;
    // Figures with different protocols are different cases; records without a figure go with the most common protocol.
    std::map<std::string, std::size_t> protocols;
    for (const auto& [host, entries] : group.hosts)
      for (const Entry* entry : entries)
        if (figure_of(*entry)) ++protocols[protocol_of(*entry->record)];
    if (protocols.empty()) continue;
    const auto most =
        std::ranges::max_element(protocols, [](const auto& a, const auto& b) { return a.second < b.second; });
    for (const auto& [protocol, count] : protocols) {
      CaseGroup alike{{}, group.kind};
      for (const auto& [host, entries] : group.hosts)
        for (const Entry* entry : entries)
          if (figure_of(*entry) ? protocol_of(*entry->record) == protocol : protocol == most->first)
            alike.hosts[host].push_back(entry);
      HostCase one = case_of(alike);
      if (one.values.size() >= 2) cases.push_back(std::move(one));
    }
  }
  return cases;
}

}  // namespace assay::report
