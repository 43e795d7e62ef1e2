// Sweeps: throughput over the values of one parameter (--set FAMILY.PARAM=sweep), up to what fits.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/document.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay::report {

// One value of the parameter that was swept.
struct SweepPoint {
  double value = 0;
  const Entry* entry = nullptr;
  const Metric* throughput = nullptr;  // null if the case has no valid one
};

// Cases of one machine that differ only in the parameter that was swept. Points into the RunSet.
struct Sweep {
  std::string parameter;
  bool planned = false;            // the plan swept it; otherwise it listed values
  std::string title;               // title of the case, without the parameter
  std::vector<SweepPoint> points;  // points that fit by the plan, in ascending order of the values
  std::vector<SweepPoint> unfit;   // points that do not fit by the plan
  // Indices into points; absent if there is none.
  std::optional<std::size_t> best;     // the highest throughput
  std::optional<std::size_t> knee;     // the smallest value within knee_share of the best
  std::optional<std::size_t> largest;  // the largest point that ran
  // The smallest value that does not fit; null if the sweep ended without one.
  const SweepPoint* beyond() const { return unfit.empty() ? nullptr : &unfit.front(); }
};

// Values of a parameter that a plan sweeps, and lists of at least min_listed micro-batches of a training case.
inline constexpr std::size_t min_listed = 3;
std::vector<Sweep> find_sweeps(const RunSet& runs);
// Section "sweeps"; empty without one.
std::vector<Section> sweep_sections(const std::vector<Sweep>& sweeps);
// The JSON of all sweeps.
Json sweeps_json(const std::vector<Sweep>& sweeps);

}  // namespace assay::report
