// What flags of a run say. Each function throws UsageError that names the flag.
#pragma once

#include "harness/plan/case.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace assay {

// --ranks: world sizes, "1,2,4", each once.
std::vector<int> parse_ranks(const std::string& text);
// --label, several: "K=V".
std::map<std::string, std::string> parse_labels(const std::vector<std::string>& texts);
// --inject, several: "crash,hang".
std::set<Fault> parse_faults(const std::vector<std::string>& texts);

}  // namespace assay
