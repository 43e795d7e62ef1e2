// Finds a machine's price by instance type, region and number of GPUs.
#pragma once

#include "harness/core/words.h"
#include "harness/runs/machine.h"
#include "reports/cost/price.h"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

// The prices to use. Files are searched in order: the user's own, then the files of configs/prices.
struct PriceSource {
  std::optional<double> given;       // USD per hour for each whole machine; files are then ignored
  std::string given_by = "--price";  // or the variable that gave it
  std::vector<PriceFile> files;
  bool asked = false;  // a flag was given; without `given` the first file is the user's
};

enum class Basis { given, on_demand, spot, owned };
constexpr auto words(Basis) { return std::to_array<std::string_view>({"--price", "on demand", "spot", "owned"}); }
using assay::name_of;
inline constexpr std::array all_bases = {Basis::given, Basis::on_demand, Basis::spot, Basis::owned};

// The price of a whole machine per hour, on one basis.
struct HourlyPrice {
  Basis basis = Basis::on_demand;
  std::optional<double> usd;      // absent if the catalogue has a placeholder, or only part of the price
  std::optional<Interval> range;  // lowest and highest, if prices vary between regions, zones or times
  std::string rule;               // how `usd` follows from the range: "median of 2 regions"; empty if it is the price
  std::string source;
  std::string date;         // the oldest, YYYY-MM-DD; empty if unknown
  std::optional<long> age;  // days from `date` to the run's start; absent if unknown
  std::string region;       // "us-east-1", "2 regions"; empty if unknown
  std::vector<std::string> warnings;
};

// All prices of a run's machine.
struct MachinePrices {
  RunMachine machine;
  std::vector<HourlyPrice> offers;  // in the order of Basis
};

// A price matches a machine of the same instance type (ignoring case) unless the providers differ. If the run's region
// (or zone) has a price, only those rows count. Several zones give their median, several regions the median of those,
// and the range is kept. A spot price given as a range gives its middle. If a catalogue lists accelerators separately,
// the price of the GPUs that the run recorded is added to that of their host in the same zone.
MachinePrices prices_of(const RunData& run, const PriceSource& source);

// Why a machine has no price, with the nearest instance type: 'no file has a price for "p5.4xlarge"; ...'.
std::string why_no_price(const RunMachine& machine, const PriceSource& source);

// The remark for a user whose own file has no price for any of these runs' machines: "own.json has no price for ...";
// empty if it has one, or there is no such file or run.
std::string unused_file(std::span<const RunData> runs, const PriceSource& source);

}  // namespace assay::report
