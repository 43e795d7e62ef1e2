// Made-up hardware, publications, prices and records, which tests of sizing share.
#pragma once

#include "reports/cost/cost.h"
#include "reports/sizing/records.h"
#include "reports/sizing/sizing.h"
#include "tests/support/runs.h"

namespace assay::report::sizing {

inline HardwareSheet sheet_of(const std::string& name, double peak, double bandwidth, double link) {
  HardwareSheet sheet;
  sheet.name = name;
  sheet.kind = "gpu";
  sheet.match = {"NVIDIA " + name};
  sheet.sold_as = {name};
  sheet.peak = {{"bf16", peak}};
  sheet.memory_bandwidth = bandwidth;
  sheet.links = {{"slow", link / 10}, {"fast", link}};
  return sheet;
}

// 100 TFLOP/s, 1 TB/s, 100 GB/s; the other is 3, 2 and 1.5 times that.
inline const HardwareSheet small = sheet_of("small", 1e14, 1e12, 1e11);
inline const HardwareSheet large = sheet_of("large", 3e14, 2e12, 1.5e11);

inline Work work_of() {
  return {.items = 1000,
          .seq = 100,
          .parameters = 1e9,
          .flops = 6e13,
          .bytes = 2e10,
          .exchanged = 1e9,
          .precision = "bf16"};
}

inline PublishedRun run_on(const std::string& hardware, double mfu, std::int64_t gpus = 8, double weights = 1e9,
                           std::int64_t seq = 100) {
  PublishedRun run;
  run.hardware = hardware;
  run.precision = "bf16";
  run.gpus = gpus;
  run.weights = weights;
  run.seq = seq;
  run.mfu = mfu;
  return run;
}

inline Published published_of() {
  Published published;
  published.training = {run_on("small", 0.5), run_on("small", 0.25)};
  published.checkpoints = {0, 0.05, "c"};
  published.idle = {0.01, 0.10, "i"};
  published.restarts = {1e-3, 2e-3, "r"};
  published.hours_lost = 2;
  published.scaling = {0.5, 1, "s"};
  return published;
}

inline Measured measured_on(const std::string& hardware, double speed, std::optional<int> ranks,
                            std::optional<Interval> interval = {}) {
  return {
      .hardware = hardware, .items_per_gpu = {speed, interval}, .ranks = ranks, .basis = Basis::records, .source = "r"};
}

// Half of them at each of the two utilizations.
inline Published four_runs() {
  Published published = published_of();
  published.training = {run_on("small", 0.2), run_on("small", 0.4), run_on("small", 0.2), run_on("small", 0.4)};
  return published;
}

inline Price price_of(const std::string& type, const std::string& gpu, double gpus, double usd) {
  Price price;
  price.instance_type = type;
  price.accelerator = gpu;
  price.accelerators = gpus;
  price.on_demand = usd;
  price.date = "2026-01-31";
  return price;
}

inline Record record_of(const std::string& key, double speed, int ranks, const std::string& device = "NVIDIA small") {
  Record record = test::record_of(key, {test::metric("throughput", speed, "tokens/s")});
  record.params = {{"model", "m"}, {"precision", "bf16"}, {"seq", 100}};
  record.world_ranks = ranks;
  RankResult rank;
  rank.device = device;
  record.ranks = {rank};
  return record;
}

}  // namespace assay::report::sizing
