// Pictures of scaling: efficiency and step time over ranks, bus bandwidth over message size. Tables hold the same.
#pragma once

#include "reports/model/document.h"
#include "reports/scaling/fit_tables.h"

#include <vector>

namespace assay::report::scaling {

// "scaling-strong", "scaling-weak" (and "-2", ...): measured with their ranges, the ideal dashed; four series a
// picture.
std::vector<Figure> efficiency_pictures(const std::vector<Series>& series, Mode mode);
// "scaling-time-1", ...: one series each, with its fit and what is predicted.
std::vector<Figure> time_pictures(const std::vector<Series>& series, const std::vector<StrongFit>& fits,
                                  const std::vector<SeriesPrediction>& predictions);
// "scaling-collective-1", ...: one series of collectives each, its fitted world sizes (the smallest and the largest).
std::vector<Figure> collective_pictures(const std::vector<FittedLine>& lines);

// Pictures of one kind at most; the tables hold the rest.
inline constexpr std::size_t max_pictures = 6;

}  // namespace assay::report::scaling
