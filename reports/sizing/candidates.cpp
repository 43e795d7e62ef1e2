#include "reports/sizing/candidates.h"

#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

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
  return std::ranges::any_of(sheet.sold_as,
                             [&](const std::string& name) { return compare_names(name, accelerator) == 0; });
}

}  // namespace

bool is_sheet_of(const HardwareSheet& sheet, const std::string& gpu) {
  return sold_as(sheet, gpu) ||
         std::ranges::any_of(sheet.match, [&](const std::string& pattern) { return matches(pattern, gpu); });
}

namespace {

// Owners may also give a part of the device's name.
bool describes(const std::string& gpu, const HardwareSheet& sheet) {
  return !gpu.empty() && (is_sheet_of(sheet, gpu) || std::ranges::any_of(sheet.match, [&](const std::string& pattern) {
                            return matches("*" + gpu + "*", pattern);
                          }));
}

// Why no sheet could take an entry; empty if one can.
std::string why_not(const std::string& gpu, std::optional<double> gpus, std::optional<double> usd,
                    std::span<const HardwareSheet> sheets, bool owned) {
  if (gpu.empty()) return gpus == 0.0 ? "no GPU" : "neither \"gpu\" nor an instance type of the shipped lists";
  if (!gpus || *gpus < 1 || *gpus != std::floor(*gpus)) return "no whole number of GPUs";
  if (!usd) return "no price on demand";
  const bool known = std::ranges::any_of(
      sheets, [&](const HardwareSheet& sheet) { return owned ? describes(gpu, sheet) : is_sheet_of(sheet, gpu); });
  return known ? "" : fmt::format("GPUs that no hardware sheet describes ({})", one_line(gpu, 60));
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
      if (is_sheet_of(sheet, price.accelerator))
        add(price.accelerators, price.on_demand,
            {.machine = price.instance_type,
             .provider = price.provider,
             .region = price.region,
             .source = price.source,
             .date = price.date});
    for (const Ownership& owned : file.owned)
      if (describes(owned.gpu, sheet))
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

std::optional<Holding> cheapest_that_holds(std::span<const PriceFile> files, std::span<const HardwareSheet> sheets,
                                           std::int64_t gpus, double bytes, const std::string& dtype, double flops) {
  for (const PriceFile& file : files) {  // the user's own is the first
    std::optional<Holding> best;
    for (const HardwareSheet& sheet : sheets) {
      if (sheet.kind != "gpu" || !sheet.memory_bytes || static_cast<double>(*sheet.memory_bytes) < bytes) continue;
      const auto peak = sheet.peak.find(dtype);
      if (flops > 0 && (peak == sheet.peak.end() || peak->second < flops)) continue;
      const auto offer = cheapest({&file, 1}, sheet, gpus);
      if (offer && (!best || offer->usd_per_hour < best->offer.usd_per_hour)) best = Holding{&sheet, *offer};
    }
    if (best) return best;
  }
  return std::nullopt;
}

std::vector<std::string> unused_prices(const PriceFile& file, std::span<const HardwareSheet> sheets) {
  std::map<std::string, std::pair<int, std::string>> reasons;  // how many, and the first
  const auto add = [&](const std::string& reason, const std::string& place, const std::string& name) {
    auto& [count, first] = reasons[reason];
    if (!reason.empty() && count++ == 0) first = fmt::format("{} ({})", place, one_line(name, 60));
  };
  for (const Price& price : file.prices)
    add(why_not(price.accelerator, price.accelerators, price.on_demand, sheets, false), price.place,
        price.instance_type);
  for (const Price& price : file.accelerators) add("GPUs without their host", price.place, price.accelerator);
  for (const Ownership& owned : file.owned)
    add(why_not(owned.gpu, owned.gpus, owned.capex, sheets, true), owned.place,
        owned.name.empty() ? owned.instance_type : owned.name);
  std::vector<std::string> texts;
  for (const auto& [reason, seen] : reasons)
    if (!reason.empty())
      texts.push_back(fmt::format("{}: not used: {} with {}, the first at {}", file.name,
                                  seen.first == 1 ? "an entry" : fmt::format("{} entries", seen.first), reason,
                                  seen.second));
  return texts;
}

std::optional<Range> Candidate::usd() const {
  return offer ? std::optional(scaled(hours, offer->usd_per_hour)) : std::nullopt;
}

std::optional<Estimate> Candidate::expected_usd() const {
  return offer && expected_hours ? std::optional(scaled(*expected_hours, offer->usd_per_hour)) : std::nullopt;
}

bool surely_before(const Candidate& a, const Candidate& b) {
  const auto left = a.usd(), right = b.usd();
  if (left && right) return surely_below(*left, *right);
  return !left && !right && surely_below(a.hours, b.hours);
}

bool not_ordered(const Candidate& a, const Candidate& b) { return !surely_before(a, b) && !surely_before(b, a); }

std::size_t place_of(const Candidate& candidate, std::span<const Candidate* const> all) {
  return 1 + static_cast<std::size_t>(
                 std::ranges::count_if(all, [&](const Candidate* other) { return surely_before(*other, candidate); }));
}

}  // namespace assay::report::sizing
