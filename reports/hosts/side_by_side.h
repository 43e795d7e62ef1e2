// A case measured by several hosts.
#pragma once

#include "harness/runs/run_set.h"
#include "harness/statistics/outliers.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay::report {

// One host's figure: the median of its records of the case with one protocol.
struct HostFigure {
  std::string host;
  const Entry* newest = nullptr;
  std::size_t runs = 0;         // records that count
  std::optional<double> value;  // absent if none counts: skipped, broken, not comparable
};

struct HostCase {
  std::string title;
  const Metric* metric = nullptr;    // of one of the hosts, for name, unit and direction
  std::vector<HostFigure> hosts;     // by name
  std::vector<double> values;        // of hosts that have one, ascending
  std::optional<Robust> statistics;  // from 8 values on

  double middle() const;
  bool outlier(const HostFigure& one) const;
};

// Cases of equal key, device, world, seed and protocol with figures of at least two hosts of one kind of machine, in
// order of appearance.
std::vector<HostCase> cases_by_host(const RunSet& runs);

}  // namespace assay::report
