// Figures that count something, as instructions and allocations do, and hardly vary.
#pragma once

#include "harness/history/store/store.h"

namespace assay::store {

// By the metric's name (instructions, allocations, allocated_bytes, peak_bytes, launches, planned_bytes, binary_bytes)
// or unit (instructions, allocations, launches, count).
bool is_count(const std::string& metric, const std::string& unit);
inline bool is_count(const SeriesIdentity& identity) { return is_count(identity.metric, identity.unit); }

// What stands for the logarithm of a count of 0: its exponential is 0.
inline constexpr double log_of_zero = -1000;

// The figure of a logarithm. Counts below 1e14 become the whole numbers that they were.
double figure_of(const SeriesIdentity& identity, double log);

}  // namespace assay::store
