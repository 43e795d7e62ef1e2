// Published figures of others for a case on a GPU or CPU. The data are in configs/published.
#pragma once

#include "harness/fitness/floors/selection.h"

#include <filesystem>
#include <string>
#include <vector>

namespace assay::report {

struct PublishedFigure : fitness::Selection {
  Interval value;                     // in `unit`; both ends are equal unless a range was published
  std::string by;                     // "gpu-fryer"
  std::vector<std::string> hardware;  // patterns for the name of the GPU, or of the CPU
};

// All figures of the folder's files, in the order of their names; none if it is absent. Throws UsageError that names
// each problem's place in a file: no source, a unit that does not fit the metric, no value.
std::vector<PublishedFigure> load_published(const std::filesystem::path& folder);

// Whether a record of this metric on this machine is the published case.
bool is_of(const PublishedFigure& figure, const Entry& entry, const Metric& metric);

// "gpu-fryer: 730 – 765 TFLOP/s, best of many shapes".
std::string published_text(const PublishedFigure& figure);
// {"low", "high", "unit", "by", "source", "note"}.
Json published_json(const PublishedFigure& figure);

}  // namespace assay::report
