// Differences between the environments of two sides: hardware, drivers, libraries, clocks, system, Assay, plan,
// labels.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/compare/pairing.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::report::comparison {

struct EnvironmentField {
  std::string title;       // "governor"
  std::string pointer;     // "environment/cpu/governors"
  std::vector<Json> base;  // every value on that side, once; null if a run lacks it
  std::vector<Json> head;
  std::string base_text;  // text for people
  std::string head_text;
};

struct EnvironmentDifference {
  std::vector<EnvironmentField> fields;  // the fields that differ
  std::vector<std::string> within_base;  // titles of fields that differ between the runs of one side
  std::vector<std::string> within_head;
};

// Leaves out what changes from minute to minute (load, free memory).
EnvironmentDifference environment_difference(const RunSet& base, const RunSet& head);

// Clocks from the records' telemetry, over cases measured on both sides: the median of the cases' medians, in Hz.
// Absent unless the sides differ by more than 2 %.
std::optional<EnvironmentField> clock_difference(const Pairing& pairing);

}  // namespace assay::report::comparison
