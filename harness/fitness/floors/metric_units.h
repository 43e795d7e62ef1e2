// The units of metrics by name: what floors may ask for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::fitness {

// Names of all known metrics, sorted.
std::vector<std::string> known_metrics();
// Units that a metric may have in a family's records; those of all families if the family is empty or not known to have
// it. Empty for an unknown metric.
std::vector<std::string> units_of(std::string_view metric, std::string_view family);

}  // namespace assay::fitness
