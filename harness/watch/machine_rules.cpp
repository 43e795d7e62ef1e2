#include "harness/watch/machine_rules.h"

#include "harness/core/text.h"
#include "harness/core/units.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::watch {
namespace {

// SageMaker's profiler calls a batch small below 70 % of all three, and a GPU idle, or a machine too large, below 50 %.
constexpr double small_limit = 0.70, oversized_limit = 0.50, spare = 1.1;
constexpr double slowed_limit = 0.05, sync_idle_limit = 0.03, min_syncs = 1;
constexpr double remote_limit = 0.20, settled_share = 0.9;

void throttled(const GpuUse& gpus, std::vector<Diagnosis>& found) {
  if (gpus.slowed < slowed_limit) return;
  const std::string clock = gpus.clock ? fmt::format(", at {:.0f} % of its clock", 100 * *gpus.clock) : "";
  found.push_back({"throttled",
                   fmt::format("the GPU of rank {} was slowed down {:.0f} % of the time{}{}", gpus.slowed_rank,
                               100 * gpus.slowed, gpus.slowed_by.empty() ? "" : " (" + gpus.slowed_by + ")", clock),
                   "check its cooling (fans, dust, the temperature of its inlet) and its power supply",
                   gpus.clock && *gpus.clock > 0 ? std::max(1.0, 1 / *gpus.clock) : 1});
}

void nodes(const Surroundings& around, std::vector<Diagnosis>& found) {
  std::vector<std::string> wrong, binding;
  for (const RankPlace& place : around.places) {
    if (place.on_node < settled_share) continue;
    const bool away = place.gpu_node && *place.gpu_node != place.node;
    const bool remote = place.remote && *place.remote >= remote_limit;
    if (!away && !remote) continue;
    const int right = place.gpu_node.value_or(place.node);
    wrong.push_back(away ? fmt::format("rank {} runs on NUMA node {}, its GPU is on {}", place.rank, place.node, right)
                         : fmt::format("{:.0f} % of the memory of rank {} is not on its NUMA node {}",
                                       100 * *place.remote, place.rank, place.node));
    binding.push_back(fmt::format("rank {}: numactl --cpunodebind={} --membind={}", place.rank, right, right));
  }
  if (!wrong.empty()) found.push_back({"numa", first_few(wrong, 2), first_few(binding, 2), 1});
}

void busy(const JobSteps& steps, const Surroundings& around, std::vector<Diagnosis>& found) {
  const GpuUse& gpus = around.gpus;
  if (!gpus.busy || !gpus.busy_p95) return;
  // What waits for data is data-starved's.
  const double idle = std::max(0.0, 1 - *gpus.busy - (around.gpu_parts ? steps.share(Part::data_wait) : 0));
  if (steps.syncs >= min_syncs && idle >= sync_idle_limit)
    found.push_back(
        {"host-sync",
         fmt::format("the host waits for the GPU {:.1f} times a step ({} in all), and then the GPU waits for "
                     "the host: it is idle {:.0f} % of the time",
                     steps.syncs, format_seconds(steps.synced), 100 * idle),
         "no .item(), .cpu() or synchronize() inside of the step: read the loss every 50th step",
         1 / std::max(0.01, 1 - idle)});
  const bool memory_left = gpus.memory && gpus.memory_room && *gpus.memory < small_limit * *gpus.memory_room;
  if (*gpus.busy_p95 < small_limit && memory_left && around.cpus_p95 && *around.cpus_p95 < small_limit) {
    const double by_memory = std::max(1.0, *gpus.memory_room / spare / std::max(*gpus.memory, 1.0));
    found.push_back(
        {"batch-small",
         fmt::format("95 % of the time the GPUs are at most {:.0f} % busy, with {} of {} and the CPUs at {:.0f} %",
                     100 * *gpus.busy_p95, format_bytes(*gpus.memory), format_bytes(*gpus.memory_room),
                     100 * *around.cpus_p95),
         fmt::format("a larger batch, up to {:.1f} times by the memory", by_memory), 1 / std::max(0.01, *gpus.busy)});
  }
}

void oversized(const Surroundings& around, std::vector<Diagnosis>& found) {
  const auto need = smaller_gpu(around.gpus);
  if (!need || (around.cheapest && around.cheapest->own)) return;
  found.push_back(
      {"oversized", fmt::format("95 % of the time its GPUs are at most {:.0f} % busy", 100 * *around.gpus.busy_p95),
       around.cheapest ? around.cheapest->text
                       : fmt::format("a smaller GPU: {} holds its memory and 10 % more", format_bytes(need->bytes)),
       1});
}

}  // namespace

std::optional<SmallerGpu> smaller_gpu(const GpuUse& gpus) {
  if (!gpus.busy_p95 || *gpus.busy_p95 >= oversized_limit || !gpus.memory) return std::nullopt;
  return SmallerGpu{gpus.name, gpus.count, spare * *gpus.memory, *gpus.busy_p95};
}

void add_machine_rules(const JobSteps& steps, const Surroundings& around, std::vector<Diagnosis>& found) {
  throttled(around.gpus, found);
  nodes(around, found);
  busy(steps, around, found);
  oversized(around, found);
}

}  // namespace assay::watch
