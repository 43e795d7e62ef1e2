// What a record's work can be counted in: time and energy a million items, an EFLOP, an epoch, a run to quality.
#pragma once

#include "reports/data/run_set.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::report {

// One kind of result.
struct Result {
  std::string per;               // "million tokens", "million images", "epoch", "run to quality", "EFLOP"
  double seconds = 0;            // of wall time for one, on all machines of the record together
  std::optional<Interval> ci95;  // within the run
};

// In the order: run to quality, million items, epoch, EFLOP.
// From throughput (items/s), over the wall time of the window; model_flops or, of products, throughput (FLOP/s), where
// repetitions were timed one by one by their mean, as a median hides stalls; time_to_quality; an epoch where the
// record's labels tell its samples (epoch_samples, images). An interval of a rate turns round: seconds = amount / rate,
// so its lower end comes from the higher rate.
std::vector<Result> results_of(const Entry& entry);

// Mean power while a record was measured.
struct Power {
  std::string sensor;  // "GPU energy", "CPU package energy": never the whole machine's
  double watts = 0;
};

// From metrics in W or J, else from telemetry over the measured window: a power series (W) or an energy counter (J).
// Empty without sensors, in windows under a second (sensors are no finer), and where the sensors saw only a part of the
// machines or GPUs that worked.
std::vector<Power> power_of(const Record& record);

}  // namespace assay::report
