// The cost of a result on the machine it was measured on: sections of the report, and costs of single records.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/cost/match.h"
#include "reports/cost/results.h"
#include "reports/model/document.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::report {

inline constexpr double seconds_per_hour = 3600;

// The flags of the command line.
struct PriceFlags {
  std::optional<std::string> file;   // --prices FILE
  std::optional<std::string> price;  // --price USD_PER_HOUR
};

// The user's file, if there is one and after complete_gpus(), then the files of configs/prices. Throws UsageError if
// read_price_file() refuses a file.
std::vector<PriceFile> price_files(const std::optional<std::string>& own);

// Completes entries of `own` that lack the kind or number of their instance type's GPUs from the shipped lists.
void complete_gpus(PriceFile& own, std::span<const PriceFile> shipped);

// The user's prices, then those of configs/prices; without a flag the price in $ASSAY_PRICE counts as --price. Throws
// UsageError if both flags are given, the price is not a number above 0, or read_price_file() refuses the file.
PriceSource load_prices(const PriceFlags& flags);

// A result on one set of terms.
//   usd = price of a machine per hour x machines / 3600 x seconds per result
// Prices whole machines, however much of them was used, over the wall time of the measured window.
struct Cost {
  std::string per;  // the priced amount: "million tokens", "EFLOP"
  double usd = 0;
  std::optional<Interval> ci95;  // within the run; the price counts as exact
  HourlyPrice price;             // price of one machine; has a value
  int machines = 1;
  std::vector<std::string> warnings;  // about the price and its use here
};

// Every result of a record on every set of terms, headline first: results in results_of()'s order, each by Basis. Empty
// for records without a cost: skipped, failed, broken, injected, not comparable, or without a price.
std::vector<Cost> costs_of(const Entry& entry, const MachinePrices& prices);
// The first of costs_of(). Looks up the run's prices each time; for many records call prices_of() once per run.
std::optional<Cost> cost_of(const Entry& entry, const PriceSource& prices);

// "The oldest of these prices is of 2026-01-31, 40 days old.", a warning beyond days_until_old; absent if none has a
// date.
std::optional<Text> oldest_price(std::span<const HourlyPrice> prices);

// Names the part of the priced machine that was idle: "1 of 8 GPUs used; ..."; empty if all of it was used.
std::string warning_of_use(const Record& record, const RunMachine& machine);

// "Cost per result", and in files every figure with its price, interval and warnings. Empty if no record has a result
// that could be priced.
std::vector<Section> cost_sections(const RunSet& runs, const PriceSource& prices);

}  // namespace assay::report
