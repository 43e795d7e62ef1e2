#include "harness/fitness/floors/metric_units.h"

#include <algorithm>
#include <array>
#include <set>

namespace assay::fitness {

namespace {

struct Known {
  std::string_view metric;
  std::string_view unit;
  std::string_view families;  // "|gemm|peak|"; empty: any
};

constexpr auto table = std::to_array<Known>({
    {"throughput", "FLOP/s", "|gemm|peak|"},
    {"throughput", "OP/s", "|gemm|peak|"},
    {"throughput", "img/s", "|dataloader|resnet|"},
    {"throughput", "tokens/s", "|dataloader|transformer|llama|"},
    {"bandwidth", "B/s", ""},
    {"algbw", "B/s", ""},
    {"busbw", "B/s", ""},
    {"read_bandwidth", "B/s", ""},
    {"compressed_bandwidth_per_core", "B/s", ""},
    {"checkpoint_write", "B/s", ""},
    {"checkpoint_read", "B/s", ""},
    {"latency", "s", ""},
    {"latency_p50", "s", ""},
    {"latency_p99", "s", ""},
    {"latency_max", "s", ""},
    {"copy_interval", "s", "|transfer|"},
    {"slowest_pair_bandwidth", "B/s", ""},
    {"median_pair_bandwidth", "B/s", ""},
    {"slowest_pair_latency", "s", ""},
    {"median_pair_latency", "s", ""},
    {"step_time", "s", ""},
    {"predicted_throughput", "tokens/s", ""},
    {"predicted_step_time", "s", ""},
    {"layer_time", "s", ""},
    {"outside_layers_time", "s", ""},
    {"step_time_2_layers", "s", ""},
    {"step_time_4_layers", "s", ""},
    {"whole_step_time", "s", ""},
    {"predicted_over_whole", "1", ""},
    {"all_reduce", "s", ""},
    {"reduce_scatter", "s", ""},
    {"all_gather", "s", ""},
    {"step_overhead", "1", ""},
    {"exposed_communication", "s", ""},
    {"exposed_communication_data", "s", ""},
    {"exposed_communication_gather", "s", ""},
    {"arrival_skew", "s", ""},
    {"transfer", "s", ""},
    {"communication_cpu", "s", ""},
    {"checkpointing_time", "s", ""},
    {"time_to_quality", "s", ""},
    {"model_flops", "FLOP/s", ""},
    {"flop_per_cycle", "FLOP", ""},
    {"mfu", "1", ""},
    {"mfu_full_attention", "1", ""},
    {"loss_step_10", "1", ""},
    {"samples_to_quality", "1", ""},
    {"eval_loss", "1", ""},
    {"eval_accuracy", "1", ""},
    {"quality_target", "1", ""},
    {"loss_floor", "1", ""},
    {"accuracy_ceiling", "1", ""},
    {"real_cores", "1", ""},
    {"peak_memory", "B", ""},
    {"memory_growth", "B", ""},
    {"communication_memory", "B", ""},
    {"communication_bytes_data", "B", ""},
    {"communication_bytes_gather", "B", ""},
    {"planned_memory", "B", ""},
    {"planned_weights", "B", ""},
    {"planned_gradients", "B", ""},
    {"planned_optimizer", "B", ""},
    {"planned_activations", "B", ""},
    {"planned_workspace", "B", ""},
    {"planned_communication", "B", ""},
    {"checkpointing_saved", "B", ""},
});

}  // namespace

std::vector<std::string> known_metrics() {
  std::set<std::string> names;
  for (const Known& known : table) names.emplace(known.metric);
  return {names.begin(), names.end()};
}

std::vector<std::string> units_of(std::string_view metric, std::string_view family) {
  if (family == "command") return {};  // its figures are what commands call so
  const std::string part = "|" + std::string(family) + "|";
  std::vector<std::string> all, own;
  for (const Known& known : table) {
    if (known.metric != metric) continue;
    all.emplace_back(known.unit);
    if (known.families.empty() || known.families.find(part) != std::string_view::npos) own.emplace_back(known.unit);
  }
  return own.empty() ? all : own;
}

}  // namespace assay::fitness
