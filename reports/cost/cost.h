// What a result costs on the machine that it was measured on: sections of the report, and one figure for those who
// compare.
#pragma once

#include "reports/cost/match.h"
#include "reports/cost/results.h"
#include "reports/data/run_set.h"
#include "reports/model/document.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::report {

inline constexpr double seconds_per_hour = 3600;

// As the flags have them; absent: not given.
struct PriceFlags {
  std::optional<std::string> file;   // --prices FILE
  std::optional<std::string> price;  // --price USD_PER_HOUR
};

// The user's prices, then those of configs/prices. Throws UsageError: both flags, a price that is no number above 0, a
// file that read_price_file() refuses.
PriceSource load_prices(const PriceFlags& flags);

// A result on one set of terms.
//   usd = price of a machine an hour x machines / 3600 x seconds a result
// Whole machines are priced, whatever share of them was used, over the wall time of the measured window.
struct Cost {
  std::string per;  // "million tokens", "EFLOP": of what one is priced
  double usd = 0;
  std::optional<Interval> ci95;  // within the run: the price is taken as exact
  HourlyPrice price;             // of one machine; with a value
  int machines = 1;
  std::vector<std::string> warnings;  // of the price and of its use here
};

// Every result of a record on every set of terms, the headline first: results in results_of()'s order, each by Basis.
// Empty for records that cannot be costed: skipped, failed, broken, injected, not comparable, or without a price.
std::vector<Cost> costs_of(const Entry& entry, const MachinePrices& prices);
// The first of costs_of(). Asks for the run's prices each time: who has many records takes prices_of() once a run.
std::optional<Cost> cost_of(const Entry& entry, const PriceSource& prices);

// What of the machine was not used though it is priced: "1 of 8 GPUs used; ..."; empty when all was.
std::string warning_of_use(const Record& record, const Machine& machine);

// "Cost per result", and in files every figure with its price, interval and warnings. Empty where no record has a
// result that could be priced.
std::vector<Section> cost_sections(const RunSet& runs, const PriceSource& prices);

}  // namespace assay::report
