// Costs of many runs brought together: by case, machine and price.
#pragma once

#include "reports/cost/cost.h"
#include "reports/model/estimate.h"

#include <string>
#include <vector>

namespace assay::report {

// One kind of result of one case on one machine or kind of machine.
struct CostLine {
  const Record* record = nullptr;  // of the first entry
  std::string per;
  std::string machine;     // "p5.48xlarge", or what the run calls its machine
  std::string stands_for;  // "one run", "one machine, 4 runs", "3 machines, 5 runs"
  double seconds = 0;      // a result takes; over runs, then over machines: the mean
  std::optional<Interval> ci95;
  std::string interval;  // "within-run", "between runs", "between machines"; empty without one
  int machines = 1;      // that work together on one result
  std::vector<HourlyPrice> offers;
  std::vector<std::string> warnings;  // of use: idle GPUs
  std::vector<Power> power;           // of one run; the mean over several
  std::string place;                  // of the first entry, and how many follow
  std::string anchor;

  Estimate usd(const HourlyPrice& price) const;  // of a price with a value
};

// A record that is in no line, by its reason.
struct LeftOut {
  std::string reason;
  int count = 0;
  std::string first;  // place of one
};

struct UnpricedMachine {
  Machine machine;
  int runs = 0;
};

struct CostLines {
  std::vector<CostLine> lines;  // by kind of result, then as the runs have them; those without a price too
  std::vector<LeftOut> left_out;
  std::vector<UnpricedMachine> unpriced;
  int other_records = 0;  // without a result that could be priced
};

// Equal cases (key, device, ranks, nodes, seed, protocol) at equal prices are one line
//   over all machines of an instance type where three or more are there: the mean of their means, with Student's t
//   interval of it (between machines);
//   else over the runs of one machine where there are three or more (between runs);
//   else a line a run (within-run).
// Machines are told apart by their host names.
CostLines cost_lines(const RunSet& runs, const PriceSource& prices);

// 95 % interval of the mean of two or more values: mean ± t(0.975, n - 1) s / sqrt(n) (Student, "The probable error of
// a mean", Biometrika 1908). Its lower end is cut off at 0: none of these can be negative.
Interval t_interval(const std::vector<double>& values);

}  // namespace assay::report
