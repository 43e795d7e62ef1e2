// Reading a series between its points.
#pragma once

#include "harness/record/metric.h"

#include <optional>

namespace assay {

// The series at `time`, on the line between its neighbours; absent outside its values.
std::optional<double> value_at(const Series& series, double time);

}  // namespace assay
