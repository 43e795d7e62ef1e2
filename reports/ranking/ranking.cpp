#include "reports/ranking/ranking.h"

#include "harness/json/json.h"
#include "harness/record/comparable.h"
#include "harness/runs/figures.h"
#include "harness/runs/machine_kind.h"
#include "harness/runs/why_left_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace assay::report::ranking {

namespace {

constexpr std::array<std::string_view, 1> free_protocol = {"isa"};
constexpr Scope between_kinds{.sides = true, .free_protocol = free_protocol};

// The records of one kind that tell of one case.
struct Measured {
  std::vector<const Entry*> usable;
  std::optional<WhyLeftOut> why;  // of the newest unusable one
};
using CaseOfKinds = std::vector<Measured>;  // by kind

// Machines of a kind are told apart by the hosts of the record's ranks, or else those of the run.
std::vector<std::string> hosts_of(const Entry& entry) {
  std::vector<std::string> hosts = entry.record->identity().hosts;
  return hosts.empty() ? machine_of(*entry.run).hosts : hosts;
}

std::vector<Kind> kinds_of(const RunSet& runs) {
  std::vector<Kind> kinds;
  for (const MachineKind& one : machine_kinds(runs.runs())) {
    const RunMachine machine = machine_of(runs.runs()[one.runs.front()]);
    std::set<std::vector<std::string>> hosts;
    for (const std::size_t run : one.runs)
      for (const Entry& entry : runs.entries_of(run)) hosts.insert(hosts_of(entry));
    std::string name = one.name;
    if (machine.instance_type.empty()) name = std::string(1, static_cast<char>('A' + kinds.size() % 26));
    kinds.push_back({std::move(name), machine.name, one.runs, hosts.size()});
  }
  return kinds;
}

// What differs besides instruction sets and choices, which follow from the machine.
std::string what_differs(const Record& a, const Record& b) {
  for (const Difference& one : differences(a, b, between_kinds)) {
    if (!one.protocol && (a.choices.contains(one.name) || b.choices.contains(one.name))) continue;
    return fmt::format("{} {} / {}", one.name, one.own.value_or("not recorded"), one.other.value_or("not recorded"));
  }
  return {};
}

// The speeds of the kind's machines: a time counts as its inverse.
Side side_of(const std::vector<const Entry*>& entries, const Metric& headline) {
  const double sign = headline.better == Better::higher ? 1 : -1;
  std::map<std::vector<std::string>, std::vector<double>> machines;
  double squares = 0;
  bool known = true;
  for (const Entry* entry : entries) {
    const Metric& metric = *positive_metric(*entry->record, headline.name);
    machines[hosts_of(*entry)].push_back(sign * std::log(*metric.value));
    if (metric.ci95 && metric.ci95->low > 0) {
      const double error = std::log(metric.ci95->high / metric.ci95->low) / (2 * normal_95);
      squares += error * error;
    } else {
      known = false;
    }
  }
  Side side;
  for (const auto& [hosts, logs] : machines) side.logs.push_back(mean(logs));
  if (known) side.within = std::sqrt(squares) / static_cast<double>(entries.size());
  return side;
}

std::optional<Interval> around(double value, const std::optional<double>& half) {
  if (!half) return std::nullopt;
  return Interval{value * std::exp(-*half), value * std::exp(*half)};
}

// Costs, power and MFU of a row; `per` is the result that the first priced row pays for.
void add_costs(Row& row, const std::vector<MachinePrices>& prices, const Spread& spread, std::string& per) {
  const std::vector<const Entry*>& entries = row.entries;
  std::vector<double> mfus, watts, seconds;
  std::map<Basis, std::pair<HourlyPrice, std::vector<double>>> usd;
  for (const Entry* entry : entries) {
    for (Cost& cost : costs_of(*entry, prices[entry->run_index])) {
      if (per.empty()) per = cost.per;
      if (cost.per != per || !(cost.usd > 0)) continue;
      auto& [price, logs] = usd[cost.price.basis];
      price = std::move(cost.price);
      logs.push_back(std::log(cost.usd));
    }
    if (const Metric* mfu = positive_metric(*entry->record, "mfu")) mfus.push_back(*mfu->value);
    const std::vector<Power> power = power_of(*entry->record);
    for (const Result& result : results_of(*entry))
      if (result.per == per && !power.empty()) watts.push_back(power.front().watts), seconds.push_back(result.seconds);
    if (!power.empty()) row.power = power.front();
  }
  if (mfus.size() == entries.size()) row.mfu = mean(mfus);
  if (!watts.empty() && watts.size() == entries.size()) {
    row.power->watts = mean(watts);
    row.joules = row.power->watts * mean(seconds);
  } else {
    row.power.reset();
  }
  for (auto& [basis, one] : usd) {
    auto& [price, logs] = one;
    if (logs.size() != entries.size()) continue;  // what only some runs were billed for is no figure of the kind
    const double log = mean(logs), value = std::exp(log);
    row.usd.push_back({{value, around(value, half_interval(row.side, spread))}, std::move(price), log});
  }
}

std::optional<RankedCase> ranked(const CaseOfKinds& one, const std::vector<Kind>& kinds,
                                 const std::vector<MachinePrices>& prices, std::vector<std::string>& not_ranked) {
  RankedCase out;
  for (std::size_t kind = 0; kind < one.size(); ++kind) {
    std::vector<const Entry*> entries = one[kind].usable;
    if (entries.empty()) {
      out.left_out.push_back(
          fmt::format("{}: {}", kinds[kind].name, one[kind].why ? one[kind].why->text() : "not run"));
      continue;
    }
    if (!out.record) {
      out.record = entries.front()->record;
      out.metric = headline_metric(*out.record);
    }
    std::string why;
    std::erase_if(entries, [&](const Entry* entry) {
      std::string differs = what_differs(*out.record, *entry->record);
      if (differs.empty() && !positive_metric(*entry->record, out.metric->name))
        differs = "no figure " + out.metric->name;
      const bool other = !differs.empty();
      if (other) why = std::move(differs);
      return other;
    });
    if (entries.empty()) {
      out.left_out.push_back(fmt::format("{}: {}", kinds[kind].name, why));
      not_ranked.push_back(fmt::format("{}: {}: {}", case_title(*out.record), kinds[kind].name, why));
      continue;
    }
    out.rows.push_back({.kind = kind, .entries = entries, .side = side_of(entries, *out.metric)});
  }
  if (out.rows.size() < 2) {
    for (std::size_t kind = 0; kind < one.size() && out.record; ++kind)
      if (one[kind].usable.empty() && one[kind].why)
        not_ranked.push_back(
            fmt::format("{}: {}: {}", case_title(*out.record), kinds[kind].name, one[kind].why->text()));
    return std::nullopt;
  }
  std::vector<Side> sides;
  for (const Row& row : out.rows) sides.push_back(row.side);
  out.spread = spread_of(sides);
  const double sign = out.metric->better == Better::higher ? 1 : -1;
  std::ranges::stable_sort(out.rows, [](const Row& a, const Row& b) { return a.side.mean() > b.side.mean(); });
  const Side best = out.rows.front().side;
  for (Row& row : out.rows) {
    const double log = row.side.mean(), gap = best.mean() - log;
    const double decisive = decisive_difference(best, row.side, out.spread, out.rows.size());
    const double figure = std::exp(sign * log);
    row.figure = {figure, around(figure, half_interval(row.side, out.spread))};
    row.relative = {std::exp(-gap), &row == &out.rows.front() ? std::nullopt : around(std::exp(-gap), decisive)};
    row.may_be_fastest = gap < decisive || &row == &out.rows.front();
    add_costs(row, prices, out.spread, out.per);
  }
  return out;
}

}  // namespace

const Usd* usd_of(const Row& row, Basis basis) {
  const auto found = std::ranges::find(row.usd, basis, [](const Usd& usd) { return usd.price.basis; });
  return found == row.usd.end() ? nullptr : &*found;
}

Ranking rank(const RunSet& runs, const PriceSource& prices) {
  Ranking ranking{kinds_of(runs), {}, {}};
  if (ranking.kinds.size() < 2) return ranking;
  std::vector<MachinePrices> priced;
  for (const RunData& run : runs.runs()) priced.push_back(prices_of(run, prices));
  std::map<Identity, CaseOfKinds> cases;
  std::vector<const Identity*> order;
  for (std::size_t kind = 0; kind < ranking.kinds.size(); ++kind)
    for (const std::size_t run : ranking.kinds[kind].runs)
      for (const Entry& entry : runs.entries_of(run)) {
        const auto [place, fresh] = cases.try_emplace(entry.record->identity().on_any_host());
        if (fresh) {
          place->second.resize(ranking.kinds.size());
          order.push_back(&place->first);
        }
        Measured& measured = place->second[kind];
        if (const auto why = why_left_out(*entry.record))
          measured.why = why;
        else if (const Metric* headline = headline_metric(*entry.record);
                 headline && positive_metric(*entry.record, headline->name))
          measured.usable.push_back(&entry);
      }
  for (const Identity* identity : order)
    if (auto one = ranked(cases.at(*identity), ranking.kinds, priced, ranking.not_ranked))
      ranking.cases.push_back(std::move(*one));
  std::stable_partition(ranking.cases.begin(), ranking.cases.end(),
                        [](const RankedCase& one) { return is_training(*one.record); });
  return ranking;
}

}  // namespace assay::report::ranking
