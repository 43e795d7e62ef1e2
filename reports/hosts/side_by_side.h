// A case as several hosts measured it.
#pragma once

#include "harness/statistics/outliers.h"
#include "reports/data/run_set.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay::report {

// One host's figure: of its records of the case in one protocol, the median.
struct HostFigure {
  std::string host;
  const Entry* newest = nullptr;
  std::size_t runs = 0;         // records that count
  std::optional<double> value;  // absent where none does: skipped, broken, not comparable
};

struct HostCase {
  std::string title;
  const Metric* metric = nullptr;    // of one of the hosts: name, unit, which way is better
  std::vector<HostFigure> hosts;     // by name
  std::vector<double> values;        // those that there are, ascending
  std::optional<Robust> statistics;  // from 8 values on

  double middle() const;
  bool outlier(const HostFigure& one) const;
};

// Cases of equal key, device, world, seed and protocol with figures of two hosts or more, in order of appearance.
std::vector<HostCase> cases_by_host(const RunSet& runs);

}  // namespace assay::report
