// Prices of machines as files state them: those shipped (configs/prices), the user's own, SkyPilot catalogues.
#pragma once

#include "harness/statistics/statistics.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

// The cost of an hour on an owned machine.

// Inputs for one owned node. Absent inputs are not counted, and the figure names them.
struct Ownership {
  std::string name;
  // The machines it describes: an instance type, hosts by name, or `gpus` of the kind `gpu`.
  std::string instance_type;
  std::vector<std::string> hosts;
  std::string gpu;
  std::optional<double> gpus;

  double capex = 0;     // USD per node
  double years = 0;     // years of use
  double power_kw = 0;  // power of the node under load
  double pue = 1;       // power usage effectiveness: power of the site over that of its machines
  double usd_per_kwh = 0;
  std::optional<double> residual;         // fraction of capex that the node is worth at the end; absent: none
  std::optional<double> cost_of_capital;  // fraction of capex per year
  std::optional<double> colocation;       // USD per hour
  std::optional<double> staff;            // USD per hour
  std::optional<double> utilisation;      // fraction of hours with useful work; absent: all

  std::string source;
  std::string date;
  std::string note;
  std::string place;
};

// USD per hour of useful work of the whole node:
//   ((capex (1 - residual) / years + capex cost_of_capital) / 8760 + power_kw pue usd_per_kwh + colocation + staff)
//   / utilisation
// Straight-line depreciation, capital on the full price, energy at full load around the clock. Divided by the node's
// GPUs it is the usual "total cost of ownership per useful GPU-hour".
double usd_per_useful_hour(const Ownership& owned);

// Absent inputs for people: "cost of capital, staff"; empty if all are given.
std::string not_counted(const Ownership& owned);

// The price of one whole machine, in USD per hour. Texts are as in the file.
struct Price {
  std::string provider;       // "aws"; empty for any
  std::string instance_type;  // "p5.48xlarge"; empty: accelerators only, to be added to a host (GCP's catalogue)
  std::string region;         // empty for any
  std::string zone;
  std::string accelerator;             // "H100"; empty if unknown
  std::optional<double> accelerators;  // per machine; below 1 if a GPU is split; absent if unknown
  std::optional<double> on_demand;     // USD per hour
  std::optional<Interval> spot;        // USD per hour, lowest and highest seen
  // The file's text for an unknown price ("700"); may be empty.
  std::string on_demand_placeholder;
  std::string spot_placeholder;
  std::string source;  // a URL or the name of a catalogue
  std::string date;    // YYYY-MM-DD; empty if unknown (catalogues)
  std::string note;
  std::string place;  // in the file: "/prices/3", "line 12"
};

struct PriceFile {
  std::string name;                 // without folders: "aws.json", "vms.csv"
  std::vector<Price> prices;        // sorted by instance type (compare_names), then region and zone
  std::vector<Price> accelerators;  // prices without an instance type, in the same order
  std::vector<Ownership> owned;
};

inline constexpr int price_schema = 1;

// The placeholder for unknown prices in GCP's rows of SkyPilot's catalogue.
inline constexpr double placeholder_price = 700.0;

// Reads a file of prices: JSON of schema 1 or CSV (catalogue.h), whichever its content is. Throws UsageError that lists
// all errors: unknown members with the nearest name, prices that are missing, not numbers, zero or negative, no source
// or date, a currency other than USD.
//
// {"schema":1,"source":"..","date":"2026-01-31","currency":"USD",
//  "prices":[{"provider":"aws","instance_type":"p5.48xlarge","region":"us-east-1","gpu":"H100","gpus":8,
//             "price":55.04,"spot_price":[10.2,25.8]}],
//  "owned":[{"name":"our node","gpu":"H100","gpus":8,"capex":325000,"years":3,"power_kw":10.2,"pue":1.2,
//            "usd_per_kwh":0.083}]}
// `source`, `date` and `currency` of the file apply to entries without their own.
PriceFile read_price_file(const std::filesystem::path& path);

// Compares names, ignoring ASCII case: below, at or above 0.
int compare_names(std::string_view a, std::string_view b);

// Days since 1970 of "2026-01-31" or of a time that begins with it; absent if it is not a date.
std::optional<long> day_of(const std::string& text);

long today();  // days since 1970

// Prices that are older, in days, are warned of.
inline constexpr long days_until_old = 180;

// Days from the date of a price to `day`; absent if either is unknown, below 0 if the price is newer.
std::optional<long> age_of(const std::string& date, std::optional<long> day);
// "2025-06-01, 40 days old"; without the age if it is unknown or below 0; "of unknown date".
std::string dated(const std::string& date, std::optional<long> age);

}  // namespace assay::report
