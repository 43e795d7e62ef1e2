// Which price is a machine's: by instance type, region and number of GPUs.
#pragma once

#include "reports/cost/price.h"
#include "reports/data/machine.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

// What the report was told of prices. Files are searched in order: the user's own, then those of configs/prices.
struct PriceSource {
  std::optional<double> given;  // --price: USD an hour of each machine, whole; files are not asked then
  std::vector<PriceFile> files;
  bool asked = false;  // by a flag
};

enum class Basis { given, on_demand, spot, owned };
// "--price", "on demand", "spot", "owned"
std::string_view name_of(Basis basis);

// What a whole machine costs an hour on one of these terms.
struct HourlyPrice {
  Basis basis = Basis::on_demand;
  std::optional<double> usd;      // absent: the catalogue has a placeholder, or not all of the price
  std::optional<Interval> range;  // lowest and highest, where prices vary between regions, zones or times
  std::string rule;               // how `usd` was taken from the range: "median of 2 regions"; empty: it is the price
  std::string source;
  std::string date;    // the oldest, YYYY-MM-DD; empty: not said
  std::string region;  // "us-east-1", "2 regions"; empty: not said
  std::vector<std::string> warnings;
};

// All prices of a run's machine.
struct MachinePrices {
  Machine machine;
  std::vector<HourlyPrice> offers;  // in the order of Basis
};

// A price is the machine's when its instance type is (case aside) and no provider contradicts. Where the run's region
// (or zone) is priced, those rows alone count. Of several zones the median is taken, of several regions the median of
// theirs, and the range is kept. Of a spot price given as a range: its middle. Accelerators that a catalogue lists
// apart are added to their host in the same zone.
MachinePrices prices_of(const RunData& run, const PriceSource& source);

// Why a machine has no price, with the nearest instance type: "no file has a price for "p5.4xlarge"; ...".
std::string why_no_price(const Machine& machine, const PriceSource& source);

inline constexpr long days_until_old = 90;

}  // namespace assay::report
