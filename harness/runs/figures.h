// Figures of records for people: which figure represents a case, with as many digits as its interval allows.
#pragma once

#include "harness/record/record.h"

#include <optional>
#include <string>
#include <string_view>

namespace assay {

// The figure that represents a case: its first metric with a value; for a small message, the latency. May be null.
const Metric* headline_metric(const Record& record);
// Null if the record lacks it or its value is unknown.
const Metric* find_metric(const Record& record, std::string_view name);

// The same, also null unless its value is finite and above 0: what has a logarithm.
const Metric* positive_metric(const Record& record, std::string_view name);

// The time of a training step, measured or added up from slices of the model. Null if the record lacks it.
const Metric* step_metric(const Record& record);

// Seconds of a phase or of a part of a step; absent if the record lacks it.
std::optional<double> span_of(const Record& record, std::string_view name);

// Half the interval's width in the metric's unit; it decides how many digits are shown.
std::optional<double> half_width(const Metric& metric);
// "412 GFLOP/s": a value in the metric's unit, with the digits that its interval allows.
std::string figure_text(const Metric& metric, double value);
// [low, high], or null.
Json interval_json(const std::optional<Interval>& interval);

// A parameter as text, from the record's params, else from its key ("gemm/m=2048/..."); empty if neither has it.
std::string param_text(const Record& record, std::string_view name);
// The same as a number; absent unless it is finite.
std::optional<double> param_number(const Record& record, std::string_view name);
// A training workload, not a micro-benchmark.
bool is_training(const Record& record);

// How a collective differs from one with plain buffers and NCCL's own choice: "symmetric buffers, NVLS off"; mostly
// empty.
std::string collective_variant(const Record& record);
// A readable name from family and parameters: "gemm f32 2048 x 2048 x 2048".
std::string case_title(const Record& record);
// A line of text in which the keys of cases are replaced by such names.
std::string with_titles(const std::string& line);

}  // namespace assay
