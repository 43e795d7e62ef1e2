// Prices of machines as a list, for `assay list prices`.
#pragma once

#include "harness/json/fwd.h"
#include "reports/cost/price.h"

#include <span>
#include <string>

namespace assay::report::sizing {

// Prices of the user's file, if there is one, then of configs/prices, in the order in which they win: one object each,
// with its age in days. `hardware` names sheets whose GPUs the machines must have ("h100-sxm,l4"); empty: any. Throws
// UsageError for an unknown sheet or a file that cannot be used.
Json price_list(const std::string& own, const std::string& hardware);

// One line each; the last says how many are old.
std::string price_list_text(const Json& list);

}  // namespace assay::report::sizing
