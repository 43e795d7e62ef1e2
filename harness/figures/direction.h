// Which way a figure counts, from its name alone.
#pragma once

#include "harness/record/metric.h"

#include <string>
#include <string_view>

namespace assay {

// What follows the last "/" of a name, without a rank behind it: "steptime_train" of "bert/steptime_train:0".
std::string_view metric_part(std::string_view name);

// Looks at the words of metric_part(), in snake_case or camelCase: bandwidth, throughput, flops and the like are better
// when higher, whatever else is there; time, latency, overhead, cost, temperature, power, loss and the like when lower.
// Other names count as better when higher.
Better guessed_better(std::string_view name);

}  // namespace assay
