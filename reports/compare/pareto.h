// Cost next to speed: what a result costs on each side, and which of the labelled sides no other side beats in both
// cost and throughput.
#pragma once

#include "reports/compare/comparison.h"
#include "reports/cost/match.h"
#include "reports/model/estimate.h"

#include <string>
#include <vector>

namespace assay::report::comparison {

// Looks up the prices of each run once.
class Costs {
 public:
  Costs(const RunSet& set, const PriceSource& prices);

  struct Value {
    Estimate usd;
    std::string per;    // "million tokens"
    std::string basis;  // "on demand"
  };
  // Geometric mean over the entries that have a cost on the same basis as the first; absent if none has one.
  std::optional<Value> of(const std::vector<const Entry*>& entries) const;
  const std::vector<MachinePrices>& prices() const { return prices_; }

 private:
  std::vector<MachinePrices> prices_;  // one for each run
};

// One side's place in one case.
struct Offer {
  std::string side;  // the run's label "side", else its instance type, else its machine
  double throughput = 0;
  double usd = 0;
  std::size_t runs = 0;
  std::string dominated_by;  // the cheapest side that is at least as fast and as cheap; empty on the front
};

struct Front {
  const Entry* example = nullptr;
  std::string unit;           // unit of throughput
  std::string per, basis;     // what the cost is per, and its basis
  std::vector<Offer> offers;  // fastest first
};

// Marks offers that are dominated: another offer is no slower, no dearer, and better in at least one of the two.
void find_front(std::vector<Offer>& offers);

// One per case that at least two sides measured with a throughput and a cost. Implementation and instruction set may
// differ: the question is what a result costs, not how it was computed.
std::vector<Front> fronts(const RunSet& base, const RunSet& head, const Costs& base_costs, const Costs& head_costs);

// Adds the machine of the table's last row, as of Pair::machine; without one it adds nothing.
void name_machine(Table& table, const std::string& machine);

// "Cost and speed" and "Cost against throughput"; empty if nothing has a price.
std::vector<Section> cost_comparison(const Comparison& comparison, const PriceSource& prices);

}  // namespace assay::report::comparison
