#include "reports/sizing/candidates.h"

#include <algorithm>
#include <cmath>

namespace assay::report::sizing {

namespace {

constexpr std::int64_t gpus_of_a_node = 8;  // published runs on several machines have such nodes

// How many machines of `each` GPUs hold `gpus`; nothing if they do not work together.
std::optional<std::int64_t> machines_for(std::int64_t gpus, std::int64_t each) {
  if (each < 1) return std::nullopt;
  if (gpus <= each) return 1;
  if (each < gpus_of_a_node || gpus % each != 0) return std::nullopt;
  return gpus / each;
}

bool sold_as(const HardwareSheet& sheet, const std::string& accelerator) {
  return std::any_of(sheet.sold_as.begin(), sheet.sold_as.end(),
                     [&](const std::string& name) { return compare_names(name, accelerator) == 0; });
}

bool describes(const Ownership& owned, const HardwareSheet& sheet) {
  return !owned.gpu.empty() && (sold_as(sheet, owned.gpu) ||
                                std::any_of(sheet.match.begin(), sheet.match.end(), [&](const std::string& pattern) {
                                  return matches("*" + owned.gpu + "*", pattern);
                                }));
}

}  // namespace

std::optional<Offer> cheapest(std::span<const PriceFile> files, const HardwareSheet& sheet, std::int64_t gpus) {
  for (const PriceFile& file : files) {
    std::optional<Offer> best;
    const auto add = [&](std::optional<double> gpus_of_one, std::optional<double> usd, Offer offer) {
      if (!usd || !gpus_of_one || *gpus_of_one != std::floor(*gpus_of_one)) return;
      offer.gpus = static_cast<std::int64_t>(*gpus_of_one);
      const auto machines = machines_for(gpus, offer.gpus);
      if (!machines) return;
      offer.machines = *machines;
      offer.usd_per_hour = *usd * static_cast<double>(*machines);
      if (!best || offer.usd_per_hour < best->usd_per_hour) best = offer;
    };
    for (const Price& price : file.prices)
      if (sold_as(sheet, price.accelerator))
        add(price.accelerators, price.on_demand,
            {.machine = price.instance_type,
             .provider = price.provider,
             .region = price.region,
             .source = price.source,
             .date = price.date});
    for (const Ownership& owned : file.owned)
      if (describes(owned, sheet))
        add(owned.gpus, usd_per_useful_hour(owned),
            {.machine = owned.name,
             .provider = {},
             .region = {},
             .owned = true,
             .source = owned.source,
             .date = owned.date});
    if (best) return best;
  }
  return std::nullopt;
}

std::optional<Range> Candidate::usd() const {
  return offer ? std::optional(scaled(hours, offer->usd_per_hour)) : std::nullopt;
}

bool surely_before(const Candidate& a, const Candidate& b) {
  const auto left = a.usd(), right = b.usd();
  if (left && right) return surely_below(*left, *right);
  return !left && !right && surely_below(a.hours, b.hours);
}

bool not_ordered(const Candidate& a, const Candidate& b) { return !surely_before(a, b) && !surely_before(b, a); }

std::size_t place_of(const Candidate& candidate, std::span<const Candidate* const> all) {
  return 1 + static_cast<std::size_t>(std::count_if(
                 all.begin(), all.end(), [&](const Candidate* other) { return surely_before(*other, candidate); }));
}

}  // namespace assay::report::sizing
