// Tables and pictures of scaling efficiency, and of what stands apart.
#pragma once

#include "reports/model/document.h"
#include "reports/scaling/series.h"

#include <optional>
#include <vector>

namespace assay::report::scaling {

// "strong" and "weak": a row a world size of each series. Absent without a series of that mode.
std::optional<Table> efficiency_table(const std::vector<Series>& series, Mode mode);
// "kept_apart": what no figure here holds, and why. Absent when nothing is.
std::optional<Table> apart_table(const std::vector<Apart>& apart);
// Cases measured at one world size: which, and the command that measures the others.
std::vector<Text> lone_texts(const std::vector<Lone>& lone);

}  // namespace assay::report::scaling
