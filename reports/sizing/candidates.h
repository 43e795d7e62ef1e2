// Machines that hold a model, what they cost, and which of them are surely cheaper than others.
#pragma once

#include "reports/cost/price.h"
#include "reports/sizing/forecast.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::report::sizing {

// What it costs to have GPUs: machines of one type.
struct Offer {
  std::string machine;  // "p5.48xlarge", or the name of an owned node
  std::string provider;
  std::string region;     // may be empty
  std::int64_t gpus = 1;  // of one machine
  std::int64_t machines = 1;
  double usd_per_hour = 0;  // of all of them
  bool owned = false;
  std::string source;
  std::string date;

  static void members(auto& self, auto& io) {
    io("machine", self.machine), io("provider", self.provider), io("region", self.region), io("gpus", self.gpus);
    io("machines", self.machines), io("usd_per_hour", self.usd_per_hour), io("owned", self.owned);
    io("source", self.source), io.null_if_empty("date", self.date);
  }
};

// The cheapest way to have `gpus` of this hardware, on demand or owned, by the first file that has one. Several
// machines work together only if each has at least 8 GPUs, and whole ones only. A larger machine may have idle GPUs.
std::optional<Offer> cheapest(std::span<const PriceFile> files, const HardwareSheet& sheet, std::int64_t gpus);

// The cheapest way to have so many GPUs, each with at least this memory (B) and, where `flops` is above 0, this peak at
// a dtype; and their sheet. Never null.
struct Holding {
  const HardwareSheet* sheet = nullptr;
  Offer offer;
};
std::optional<Holding> cheapest_that_holds(std::span<const PriceFile> files, std::span<const HardwareSheet> sheets,
                                           std::int64_t gpus, double bytes, const std::string& dtype, double flops);

// What of a file can price no hardware, by reason: "own.json: not used: an entry with no GPU, the first at /prices/3
// (box)". Empty if each entry can.
std::vector<std::string> unused_prices(const PriceFile& file, std::span<const HardwareSheet> sheets);

// Whether a price's `gpu` names this hardware: as catalogues do, or by the device's own name.
bool is_sheet_of(const HardwareSheet& sheet, const std::string& gpu);

struct Candidate {
  std::string hardware;
  std::int64_t gpus = 1;
  StepTime step;
  Range hours;
  std::optional<Offer> offer;
  std::optional<Estimate> expected_hours = {};

  std::optional<Range> usd() const;  // of the whole training; absent without a price
  std::optional<Estimate> expected_usd() const;
};

// Cheaper, or without any prices faster, whatever the true values within both ranges are.
bool surely_before(const Candidate& a, const Candidate& b);
// Neither is surely before the other.
bool not_ordered(const Candidate& a, const Candidate& b);

// How many are surely before it, plus 1: those that are not ordered may have equal places.
std::size_t place_of(const Candidate& candidate, std::span<const Candidate* const> all);

}  // namespace assay::report::sizing
