// Prices in CSV: SkyPilot's catalogues as they are, and the user's own tables.
#pragma once

#include "reports/cost/price.h"

#include <string>
#include <string_view>

namespace assay::report {

// Columns by name, in any order and case; each cloud has its own set.
//
// A table with a column AcceleratorName and neither Source nor Date is a catalogue (vms.csv of
// https://github.com/skypilot-org/skypilot-catalog): InstanceType, AcceleratorName, AcceleratorCount, Price, SpotPrice,
// Region, AvailabilityZone count, others are passed over. Prices may be empty there, and 0, negative ones and 700 are
// what the catalogue has for an unknown one. Rows without InstanceType are accelerators alone (GCP). The date is that
// in the file's name, if there is one.
//
// Any other table is the user's own: InstanceType, Price, Source and Date in every row; Provider, SpotPrice, Region,
// AvailabilityZone, AcceleratorName, AcceleratorCount, Currency may be there.
//
// Throws UsageError that lists every line that is wrong.
PriceFile read_price_table(std::string_view text, const std::string& name);

}  // namespace assay::report
