// Prices in CSV: SkyPilot's catalogues unchanged, and the user's own tables.
#pragma once

#include "reports/cost/price.h"

#include <string>
#include <string_view>

namespace assay::report {

// Columns go by name, in any order and case; each cloud has its own set.
//
// A table with a column AcceleratorName and neither Source nor Date is a catalogue (vms.csv of
// https://github.com/skypilot-org/skypilot-catalog): InstanceType, AcceleratorName, AcceleratorCount, Price, SpotPrice,
// Region, AvailabilityZone are read, other columns ignored. Prices may be empty; 0, negative prices and 700 are
// placeholders for unknown ones. Rows without InstanceType are accelerators only (GCP). The date is that in the file's
// name, if there is one.
//
// Any other table is the user's own: InstanceType, Price, Source and Date in every row; Provider, SpotPrice, Region,
// AvailabilityZone, AcceleratorName, AcceleratorCount, Currency are optional.
//
// Throws UsageError that lists every bad line.
PriceFile read_price_table(std::string_view text, const std::string& name);

}  // namespace assay::report
