// Interpolation in a series.
#pragma once

#include "harness/record/metric.h"

#include <optional>

namespace assay {

// The series at `time`, interpolated linearly; absent outside its values.
std::optional<double> value_at(const Series& series, double time);

}  // namespace assay
