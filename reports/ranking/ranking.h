// Ranks several kinds of machines by the cases that at least two of them ran: by speed and by cost per result.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/cost/cost.h"
#include "reports/model/document.h"
#include "reports/model/estimate.h"
#include "reports/ranking/spread.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay::report::ranking {

// One kind of machine (machine_kinds()); machines of a kind are told apart by their hosts.
struct Kind {
  std::string name;         // the instance type, else "A", "B", ... in the order of their first runs
  std::string description;  // "AMD Zen 4, 2 cores, 24 GiB, no GPU"
  std::vector<std::size_t> runs;
  std::size_t machines = 0;
};

// A kind's cost of one result on one basis; its interval is that of the speed, the price counts as exact.
struct Usd {
  Estimate value;
  HourlyPrice price;
  double log = 0;  // natural logarithm of the value, for comparisons
};

struct Row {
  std::size_t kind = 0;                    // in Ranking::kinds
  std::vector<const Entry*> entries = {};  // one per run, the newest last
  Side side = {};
  Estimate figure = {};               // geometric mean over machines, in the metric's unit
  Estimate relative = {};             // speed as a fraction of the fastest; the interval is that of the ratio
  bool may_be_fastest = false;        // the fastest, or too close to it to tell
  std::optional<double> mfu = {};     // mean over runs; absent unless each run has it
  std::vector<Usd> usd = {};          // in the order of Basis
  std::optional<Power> power = {};    // mean over runs of the first sensor that each run has
  std::optional<double> joules = {};  // per result
};

// Null if the kind has no price on this basis.
const Usd* usd_of(const Row& row, Basis basis);

struct RankedCase {
  const Record* record = nullptr;
  const Metric* metric = nullptr;
  std::string per;        // what `usd` and `joules` pay for: "million tokens"; empty if nothing is priced
  std::vector<Row> rows;  // the fastest first, at least two
  Spread spread;
  std::vector<std::string> left_out;  // "p4de: failed", "a3: not run"
};

struct Ranking {
  std::vector<Kind> kinds;              // at least two, else there are no cases
  std::vector<RankedCase> cases;        // training first, then in the order of the records
  std::vector<std::string> not_ranked;  // cases of which fewer than two kinds have a comparable figure, with the reason
};

// Machines differ in instruction sets and in what libraries and searches chose; all else of protocol and conditions
// must be equal. Injected, failed and skipped records have no figure. Points into `runs`.
Ranking rank(const RunSet& runs, const PriceSource& prices);

// Which is fastest and which cheapest, until what price, and what is too close to tell.
std::vector<std::string> sentences_of(const Ranking& ranking, const RankedCase& ranked);

// "Which machine?": for each training case a sentence, a bar and a row per kind, on one scale; then the other cases in
// one table. Files also have each case's figures. Empty with one kind, or without a common case. `items`: also the bill
// for that many tokens or images of the training cases.
std::vector<Section> sections_of(const Ranking& ranking, std::optional<double> items = {});
// {"machines":[{"machine","description","machines","runs","cases":[{"case","speed","relative","mfu",
//   "usd_per_million":{"on_demand","spot","owned","given"}}]}],"sentences":[...],"not_ranked":[...]}
Json json_of(const Ranking& ranking);

}  // namespace assay::report::ranking
