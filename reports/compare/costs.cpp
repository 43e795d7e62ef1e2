// Costs of both sides next to their speed.
#include "reports/compare/costs.h"

#include "harness/core/units.h"
#include "reports/compare/words.h"
#include "reports/cost/cost.h"
#include "reports/model/cells.h"
#include "reports/model/estimate.h"
#include "reports/scaling/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace assay::report::comparison {

namespace {

struct SideCost {
  Estimate usd;
  std::string per;    // "million tokens"
  std::string basis;  // "on demand"
};

// One for each run.
std::vector<MachinePrices> prices_of_runs(const RunSet& set, const PriceSource& source) {
  std::vector<MachinePrices> prices;
  for (const RunData& run : set.runs()) prices.push_back(prices_of(run, source));
  return prices;
}

// The geometric mean over the entries that have a cost on the same basis as the first; absent if none has one.
std::optional<SideCost> cost_of_side(const std::vector<const Entry*>& entries,
                                     const std::vector<MachinePrices>& prices) {
  std::optional<SideCost> value;
  double logs = 0;
  int n = 0;
  std::vector<Estimate> costs;
  for (const Entry* entry : entries) {
    for (const Cost& cost : costs_of(*entry, prices[entry->run_index])) {
      const std::string basis(name_of(cost.price.basis));
      if (!(cost.usd > 0) || !std::isfinite(cost.usd)) continue;
      if (!value) value = SideCost{{}, cost.per, basis};
      if (cost.per != value->per || basis != value->basis) continue;
      logs += std::log(cost.usd);
      if (const auto positive = scaling::positive(cost.usd, cost.ci95)) costs.push_back(*positive);
      ++n;
      break;
    }
  }
  if (value) value->usd.value = std::exp(logs / n);
  if (!costs.empty()) value->usd.interval = scaling::pooled(costs).interval;
  return value;
}

}  // namespace

void name_machine(Table& table, const std::string& machine) {
  if (machine.empty()) return;
  if (table.columns.back().id != "machine") table.columns.push_back({"machine", "machine"});
  table.rows.back().push_back({machine, nullptr});
}

std::optional<Section> cost_comparison(const Comparison& comparison, const PriceSource& prices) {
  const auto base_prices = prices_of_runs(comparison.base, prices),
             head_prices = prices_of_runs(comparison.head, prices);
  Table table{"cost", "", {{"case"}, {"per"}, right("base"), right("head"), right("ratio", "cost"), right("speed")}};
  const Pair* last = nullptr;
  for (const Compared& one : comparison.compared) {
    if (!one.pair->headline) continue;
    if (last && last->base == one.pair->base && last->machine == one.pair->machine) continue;
    last = one.pair;
    const auto base = cost_of_side(one.pair->base_entries, base_prices);
    const auto head = cost_of_side(one.pair->head_entries, head_prices);
    if (!base || !head || base->per != head->per || base->basis != head->basis) continue;
    const Estimate ratio = scaling::ratio(head->usd, base->usd);
    table.rows.push_back(
        {case_cell(*one.pair->base->record),
         {fmt::format("{}, {}", base->per, base->basis), {{"per", base->per}, {"basis", base->basis}}},
         quantity_cell({base->usd.value}, "USD"),
         quantity_cell({head->usd.value}, "USD"),
         {change_text(ratio.value, ratio.interval), ratio.value, Tone::plain, {}, ratio.value},
         {change_text(one.change.ratio, one.change.ci95), one.change.ratio, Tone::plain, {}, one.change.ratio}});
    name_machine(table, one.pair->machine);
  }
  if (table.rows.empty()) return std::nullopt;
  Section section{"cost", "Cost and speed", {std::move(table)}};
  section.blocks.push_back(Text{
      "Cost counts wall time, including stalls; the speed of a micro-benchmark is taken from medians.", Tone::faint});
  std::vector<HourlyPrice> used;  // the first known price of each run, on which its costs rest
  for (const auto& runs : {base_prices, head_prices})
    for (const MachinePrices& machine : runs) {
      const auto known = std::ranges::find_if(machine.offers, [](const auto& offer) { return offer.usd.has_value(); });
      if (known != machine.offers.end()) used.push_back(*known);
    }
  if (auto oldest = oldest_price(used)) section.blocks.push_back(*std::move(oldest));
  return section;
}

}  // namespace assay::report::comparison
