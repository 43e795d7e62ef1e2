// Pictures of scaling: efficiency and step time over ranks, bandwidth over message size. Tables show the same.
#pragma once

#include "reports/model/document.h"
#include "reports/scaling/fit_tables.h"

#include <vector>

namespace assay::report::scaling {

// "scaling-strong", "scaling-weak" (and "-2", ...): measured with ranges, the ideal dashed; four series per picture.
std::vector<Figure> efficiency_pictures(const std::vector<Series>& series, Mode mode);
// "scaling-time-1", ...: one series each, with its fit and predictions.
std::vector<Figure> time_pictures(const std::vector<Series>& series, const std::vector<StrongFit>& fits,
                                  const std::vector<SeriesPrediction>& predictions);
// "scaling-collective-1", ...: one series of collectives each, with its smallest and largest fitted world size.
std::vector<Figure> collective_pictures(const std::vector<FittedLine>& lines);

// At most this many pictures of one kind; the tables have the rest.
inline constexpr std::size_t max_pictures = 6;

}  // namespace assay::report::scaling
