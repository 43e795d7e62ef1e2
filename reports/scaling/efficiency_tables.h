// Tables of scaling efficiency, and of what was left out of it.
#pragma once

#include "reports/model/document.h"
#include "reports/scaling/series.h"

#include <optional>
#include <vector>

namespace assay::report::scaling {

// "strong" and "weak": one row per world size of each series. Absent without a series of that mode.
std::optional<Table> efficiency_table(const std::vector<Series>& series, Mode mode);
// "kept_apart": the records left out, and why. May be absent.
std::optional<Table> excluded_table(const std::vector<Excluded>& excluded);
// Cases measured at one world size only, and the command that measures more.
std::vector<Text> lone_texts(const std::vector<Lone>& lone);

}  // namespace assay::report::scaling
