// Figures with which key figures are compared besides their peaks: reference runs of such machines, published figures.
#pragma once

#include "harness/runs/key_figures.h"
#include "reports/references/published.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <vector>

namespace assay::report {

struct References {
  std::shared_ptr<const RunSet> runs = {};  // may be null
  std::vector<PublishedFigure> published = {};
};

// configs/reference: run directories without host names.
std::filesystem::path reference_folder();
// Those shipped or added. Throws UsageError if one cannot be read.
References shipped_references();

// The references for one key figure.
struct Beside {
  std::vector<double> values;     // from runs on machines of the same name, measured in the same way; smallest first
  std::vector<std::size_t> runs;  // which: RunSet::runs()
  std::vector<const PublishedFigure*> published;
};
// "three runs of such machines: 35 – 82 GB/s", from eight on with the percentile of those that are not better; empty
// without any.
std::string place_among(const Metric& metric, const std::vector<double>& references);
Beside beside(const KeyFigure& figure, const MachineRuns& machine, const References& references);

}  // namespace assay::report
