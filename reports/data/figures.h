// Figures of records for people: which one a case is known by, with as many digits as its interval allows.
#pragma once

#include "harness/record/record.h"

#include <optional>
#include <string>
#include <string_view>

namespace assay::report {

// The figure a case is known by: its first metric that has a value; the latency of a small message. Null if none.
const Metric* headline_metric(const Record& record);
// By its name; null when the record lacks it or its value is unknown.
const Metric* find_metric(const Record& record, std::string_view name);

// The interval's half width in the metric's unit: it chooses how many digits are shown.
std::optional<double> half_width(const Metric& metric);
// "412 GFLOP/s": a value in the metric's unit, with the digits that the metric's interval allows.
std::string figure_text(const Metric& metric, double value);
// [low, high], or null.
Json interval_json(const std::optional<Interval>& interval);

// A parameter as text, from the record's params or else from its key ("gemm/m=2048/..."); empty when neither has it.
std::string param_text(const Record& record, std::string_view name);
// The same as a number that is finite; nothing when it is none.
std::optional<double> param_number(const Record& record, std::string_view name);
// Training: a workload, not a micro-benchmark.
bool is_training(const Record& record);

// Readable name of a case, from its family and parameters: "gemm f32 2048 x 2048 x 2048".
std::string case_title(const Record& record);

}  // namespace assay::report
