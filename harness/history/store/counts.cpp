#include "harness/history/store/counts.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace assay::store {

bool is_count(const std::string& metric, const std::string& unit) {
  constexpr std::string_view metrics[] = {
      "instructions",    "allocations",    "allocated_bytes",      "peak_bytes",
      "launches",        "planned_bytes",  "planned_memory",       "binary_bytes",
      "allocs_per_iter", "max_bytes_used", "total_allocated_bytes"};  // the last three: Google Benchmark's
  constexpr std::string_view units[] = {"instructions", "allocations", "launches", "count"};
  const auto holds = [](const auto& list, const std::string& name) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
  };
  return holds(metrics, metric) || holds(units, unit);
}

double figure_of(const SeriesIdentity& identity, double log) {
  const double figure = std::exp(log), whole = std::round(figure);
  return is_count(identity) && std::abs(figure - whole) <= 1e-9 * whole ? whole : figure;
}

}  // namespace assay::store
