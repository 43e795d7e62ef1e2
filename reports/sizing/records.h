// Training speeds that runs have measured, as a basis of forecasts.
#pragma once

#include "harness/machine/hardware.h"
#include "harness/runs/run_set.h"
#include "reports/sizing/forecast.h"

#include <span>
#include <string>
#include <vector>

namespace assay::report::sizing {

struct Speeds {
  std::vector<Measured> measured;
  std::vector<std::string> unknown_devices;  // that trained this model but match no sheet
};

// Speeds of the records that train the model of this name in this precision at this length of sequences;
// 0 for images. A rank's speed is the metric tokens_per_s, else throughput, or predicted_throughput of slices, over the
// ranks; several records of one hardware and number of ranks are pooled; if they are of several kinds of machines, the
// interval reaches from the slowest kind to the fastest. Leaves out records whose figures do not count (why_left_out).
Speeds speeds_of(const RunSet& runs, const std::string& model, const std::string& precision, std::int64_t seq,
                 std::span<const HardwareSheet> sheets);

}  // namespace assay::report::sizing
