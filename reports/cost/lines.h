// Costs of many runs combined by case, machine and price.
#pragma once

#include "reports/cost/cost.h"
#include "reports/model/estimate.h"

#include <string>
#include <vector>

namespace assay::report {

// One kind of result of one case on one machine or kind of machine.
struct CostLine {
  const Record* record = nullptr;  // the first entry's
  std::string per;
  std::string machine;     // "p5.48xlarge", or the name that the run gives its machine
  std::string stands_for;  // "one run", "one machine, 4 runs", "3 machines, 5 runs"
  double seconds = 0;      // per result; the mean over runs, then over machines
  std::optional<Interval> ci95;
  std::string interval;  // "within-run", "between runs", "between machines"; empty without an interval
  int machines = 1;      // working together on one result
  std::vector<HourlyPrice> offers;
  std::vector<std::string> warnings;  // about use: idle GPUs
  std::vector<Power> power;           // the run's, or the mean over several runs
  std::string place;                  // the first entry's place, and how many more entries there are
  std::string anchor;

  Estimate usd(const HourlyPrice& price) const;  // for a price with a value
};

// Records that are in no line, by reason.
struct LeftOut {
  std::string reason;
  int count = 0;
  std::string first;  // place of the first
};

struct UnpricedMachine {
  RunMachine machine;
  int runs = 0;
};

struct CostLines {
  std::vector<CostLine> lines;  // sorted by kind of result, then in the runs' order; includes lines without a price
  std::vector<LeftOut> left_out;
  std::vector<UnpricedMachine> unpriced;
  int other_records = 0;  // without a result that could be priced
};

// Equal cases (key, device, ranks, nodes, seed, protocol) at equal prices form one line
//   over all machines of an instance type if there are at least three: the mean of their means, with Student's t
//   interval (between machines);
//   else over the runs of one machine if there are at least three (between runs);
//   else one line per run (within-run).
// Host names distinguish machines.
CostLines cost_lines(const RunSet& runs, const PriceSource& prices);

}  // namespace assay::report
