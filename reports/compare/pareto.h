// Cost beside speed: what a result costs on each side, and which of any number of labelled sides no other one beats in
// both cost and throughput.
#pragma once

#include "reports/compare/comparison.h"
#include "reports/cost/match.h"

#include <string>
#include <vector>

namespace assay::report::comparison {

// Costs of runs, each run's prices looked up once.
class Costs {
 public:
  Costs(const RunSet& set, const PriceSource& prices);

  struct Value {
    double usd = 0;
    std::string per;    // "million tokens"
    std::string basis;  // "on demand"
  };
  // Geometric mean over those of the entries that have one, in the terms of the first; absent when none has.
  std::optional<Value> of(const std::vector<const Entry*>& entries) const;

 private:
  std::vector<MachinePrices> prices_;  // of each run
};

// One side's place in one case.
struct Offer {
  std::string side;  // the run's label side, else its instance type, else its machine
  double throughput = 0;
  double usd = 0;
  std::size_t runs = 0;
  std::string dominated_by;  // the cheapest side that is at least as fast and as cheap; empty: on the front
};

struct Front {
  const Entry* example = nullptr;
  std::string unit;           // of throughput
  std::string per, basis;     // of cost
  std::vector<Offer> offers;  // fastest first
};

// Marks what is dominated: another offer is no slower and no dearer, and better in one of both.
void find_front(std::vector<Offer>& offers);

// Of each case that two sides or more measured with a throughput and a cost. Implementation and instruction set may
// differ: the question is what a result costs, not how it was computed.
std::vector<Front> fronts(const RunSet& base, const RunSet& head, const Costs& base_costs, const Costs& head_costs);

// "Cost beside speed" and "Cost against throughput"; empty where nothing has a price.
std::vector<Section> cost_comparison(const Comparison& comparison, const PriceSource& prices);

}  // namespace assay::report::comparison
