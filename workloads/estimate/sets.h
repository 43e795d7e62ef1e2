// What --set gives: name=value pairs, read by a schema.
#pragma once

#include "harness/plan/params.h"

#include <string>
#include <utility>
#include <vector>

namespace assay::estimate {

// The pairs of "name=value,name=value" texts, as written. Throws UsageError for one without "=" or a name given twice.
std::vector<std::pair<std::string, std::string>> pairs_of(const std::vector<std::string>& texts);

// Sets what the pairs name. Throws UsageError for names and values that the schema does not have, with the nearest.
void set_params(const Schema& schema, const std::vector<std::pair<std::string, std::string>>& pairs, Params& params);

}  // namespace assay::estimate
