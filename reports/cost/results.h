// Units in which a record's work can be counted: time and energy per million items, EFLOP, epoch or run to quality.
#pragma once

#include "harness/runs/run_set.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::report {

// One kind of result.
struct Result {
  std::string per;               // "million tokens", "million images", "epoch", "run to quality", "run", "EFLOP"
  double seconds = 0;            // wall time per result, on all machines of the record together
  std::optional<Interval> ci95;  // within the run
};

// In the order: run to quality, run of a command without a rate, million items, epoch, EFLOP.
// Sources: throughput (items/s) over the wall time of the window; model_flops, or for matrix products throughput
// (FLOP/s), by the mean if repetitions were timed one by one, as a median hides stalls; time_to_quality; an epoch if
// the record's labels give its samples (epoch_samples, images). As seconds = amount / rate, the lower end of an
// interval comes from the higher rate.
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
