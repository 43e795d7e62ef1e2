// Projected world sizes with what they cost: the answer of `assay project`.
#pragma once

#include "harness/json/fwd.h"
#include "reports/cost/cost.h"
#include "reports/scaling/projection.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::report::scaling {

struct PricedProjection {
  Series series;
  Projection projection;
  std::optional<Cost> cost;  // of the largest measured world
  int per_machine = 1;       // ranks

  // As many machines as there, unless those ranks need more; as many items a step, unless each rank has its own.
  std::optional<Estimate> usd(const Projected& size) const;
};

struct Projections {
  std::vector<PricedProjection> all;
  std::size_t max_worlds = 0;  // of any series of the runs, also of those that cannot be projected
};

Projections projections_of(const RunSet& runs, std::span<const int> ranks, const PriceSource& prices);

Json to_json(const Projections& found);
std::string to_text(const Projections& found);

}  // namespace assay::report::scaling
