// Series split by a fact, where a machine has states that a fact tells apart: a power profile, a driver.
#pragma once

#include "harness/history/store/store.h"

#include <cstdint>
#include <string>

namespace assay::history {

// The contents with each series split into one for every value that this fact had in its runs; their names and
// conditions say which. The first value's keeps the series' number. Throws UsageError with `place` if no run has the
// fact. An empty `fact` splits nothing.
store::Contents split_by(store::Contents contents, const std::string& fact, const std::string& place);

// The number of the series that a part came from.
std::int64_t whole_of(std::int64_t number);

}  // namespace assay::history
