// The tables and pictures of the sections on scaling.
#pragma once

#include "reports/model/document.h"
#include "reports/scaling/alpha_beta.h"
#include "reports/scaling/amdahl.h"
#include "reports/scaling/collectives.h"
#include "reports/scaling/projection.h"
#include "reports/scaling/ranks.h"
#include "reports/scaling/series.h"

#include <optional>
#include <vector>

namespace assay::report::scaling {

// Tables of scaling efficiency, and of what was left out of it.

// "strong" and "weak": one row per world size of each series. Absent without a series of that mode.
std::optional<Table> efficiency_table(const std::vector<Series>& series, Mode mode);
// "kept_apart": the records left out, and why. May be absent.
std::optional<Table> excluded_table(const std::vector<Excluded>& excluded);
// Cases measured at one world size only, and the command that measures more.
std::vector<Text> lone_texts(const std::vector<Lone>& lone);

// Tables of what was fitted: Amdahl, collectives, residuals, predictions, ranks.

// Fits with their series; computed once, shown in tables and pictures.
struct StrongFit {
  const Series* series = nullptr;
  Amdahl amdahl;
};
struct SeriesPrediction {
  const Series* series = nullptr;
  Projection projection;
};
struct FittedLine {
  const CollectiveSeries* series = nullptr;
  MessageLine line;            // one world size, or some of its sizes
  bool whole = true;           // all sizes of that world size
  std::optional<LineFit> fit;  // absent with too few sizes
};
struct FittedForms {
  const CollectiveSeries* series = nullptr;
  std::string sizes;  // "8 B – 4 KiB"
  std::vector<FormFit> forms;
};

// Tables without rows are absent. The first two are for the terminal too: few columns, with intervals only in the
// cells' data.
std::optional<Table> prediction_table(const std::vector<SeriesPrediction>& predictions);  // "prediction"
std::optional<Table> message_table(const std::vector<FittedLine>& lines);                 // "collectives"
std::optional<Table> model_table(const std::vector<SeriesPrediction>& predictions);       // "prediction_models"
std::optional<Table> amdahl_table(const std::vector<StrongFit>& fits);                    // "amdahl"
std::optional<Table> line_table(const std::vector<FittedLine>& lines);                    // "collective_fits"
std::optional<Table> form_table(const std::vector<FittedForms>& forms);                   // "collective_forms"
// "residuals": of each fitted point, for lines and Amdahl's form.
std::optional<Table> residual_table(const std::vector<FittedLine>& lines, const std::vector<StrongFit>& fits);
std::optional<Table> rank_table(const std::vector<RankSpread>& spreads);  // "ranks"

std::string sizes_text(const MessageLine& line);  // "8 B – 4 KiB"

// Which fits lack message sizes, and the command that measures more; may be empty.
std::vector<Text> missing_texts(const std::vector<FittedLine>& lines);

// Pictures of scaling: efficiency and step time over ranks, bandwidth over message size. Tables show the same.

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
