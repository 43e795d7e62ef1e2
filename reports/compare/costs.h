// Cost next to speed: what a result costs on each side.
#pragma once

#include "reports/compare/comparison.h"
#include "reports/cost/match.h"

#include <optional>
#include <string>

namespace assay::report::comparison {

// Adds the machine of the table's last row, as of Pair::machine; without one it adds nothing.
void name_machine(Table& table, const std::string& machine);

// "Cost and speed"; absent if nothing has a price on both sides.
std::optional<Section> cost_comparison(const Comparison& comparison, const PriceSource& prices);

}  // namespace assay::report::comparison
