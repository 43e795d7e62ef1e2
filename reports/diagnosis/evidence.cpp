#include "reports/diagnosis/evidence.h"

#include "harness/core/whole_number.h"
#include "harness/json/json.h"
#include "harness/runs/figures.h"
#include "harness/runs/step_shares.h"
#include "harness/runs/traced.h"
#include "harness/statistics/slowest.h"
#include "reports/roofline/roofs.h"
#include "reports/summary/entry_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report {

namespace {

Evidence missing(std::string what) { return {std::nullopt, std::move(what)}; }
Evidence number(double value, std::optional<double> saved = {}) { return {Estimate{value}, "", saved}; }

// One of a step's parts, with the interval of the step's time.
Evidence part_of_step(const Record& record, std::string_view part) {
  const auto share = step_share(record, part);
  if (!share) return missing(step_metric(record) ? "a step timed by parts" : "a training step");
  Evidence evidence = number(*share, *share);
  if (const auto& interval = step_metric(record)->ci95; interval && interval->low > 0)
    evidence.number->interval =
        Interval{*step_share(record, part, interval->high), *step_share(record, part, interval->low)};
  return evidence;
}

// Seconds of a step, with the interval of the step's time.
Evidence share_of_step(const Record& record, std::optional<double> part, const char* needs) {
  const Metric* step = step_metric(record);
  if (!step || !(*step->value > 0)) return missing("a training step");
  if (!part || !std::isfinite(*part) || *part < 0) return missing(needs);
  const auto share = [&](double seconds) { return std::min(1.0, *part / seconds); };
  Evidence evidence = number(share(*step->value), share(*step->value));
  if (step->ci95 && step->ci95->low > 0)
    evidence.number->interval = Interval{share(step->ci95->high), share(step->ci95->low)};
  return evidence;
}

std::optional<double> metric_value(const Record& record, std::string_view name) {
  const Metric* metric = find_metric(record, name);
  return metric ? metric->value : std::nullopt;
}

struct SlowestRank {
  const RankResult* rank = nullptr;
  double ratio = 1;        // its own time over the median of the others'
  double saved_alone = 0;  // of a training step: 1 - what the others take for one without any exchange

  // The fraction of its time that the others' pace would save, at most. Their pace includes what waiting costs them: a
  // thread that polls for the slowest rank takes CPU time from the computation beside it. So steps without an exchange,
  // which wait for nobody, bound it as well.
  double saved() const { return std::max(saved_by_pace(), saved_alone); }
  double saved_by_pace() const { return ratio > 1 ? 1 - 1 / ratio : 0; }
  // Fills in the evidence that it causes.
  void explain(Evidence& evidence) const {
    evidence.saved = saved();
    evidence.rank =
        fmt::format("rank {} on {}{}{}", rank->rank, rank->host, rank->pci.empty() ? "" : ", GPU ", rank->pci);
  }
};

// From means over all ranks of steps without an exchange: the step less its exposed communication; the slowest rank's:
// the step less its transfer. 0: unknown.
double saved_without_slowest(const Record& record) {
  const auto step = metric_value(record, "step_time"), exposed = metric_value(record, "exposed_communication"),
             transfer = metric_value(record, "transfer");
  if (!step || !exposed || !transfer || record.world_ranks < 2 || !(*step > 0)) return 0;
  const double mean = *step - *exposed, slowest = *step - *transfer;
  const double others = (record.world_ranks * mean - slowest) / (record.world_ranks - 1);
  return others > 0 && others < slowest ? std::max(0.0, 1 - others / *step) : 0;
}

std::optional<SlowestRank> slowest_rank(const Record& record) {
  std::vector<const RankResult*> ranks;
  std::vector<double> paces;
  for (const RankResult& rank : record.ranks) {
    if (!rank.pace || !(*rank.pace > 0)) continue;
    ranks.push_back(&rank);
    paces.push_back(*rank.pace);
  }
  const auto slowest = slowest_of(paces);
  if (!slowest) return std::nullopt;
  if (!slowest->stands_out()) return SlowestRank{ranks[slowest->index]};
  // Ranks that differ by less hardly wait for each other.
  constexpr double clearly_slow = 1.5;
  const double ratio = slowest->ratio();
  return SlowestRank{ranks[slowest->index], ratio, ratio >= clearly_slow ? saved_without_slowest(record) : 0};
}

Evidence pace_ratio(const Record& record) {
  const auto slowest = slowest_rank(record);
  if (!slowest) return missing("several ranks");
  Evidence evidence = number(slowest->ratio);
  slowest->explain(evidence);
  return evidence;
}

Evidence communication_evidence(const Record& record) {
  Evidence evidence = part_of_step(record, "exposed_communication");
  const auto share = communication_share(record);
  if (!evidence.number || !share) return evidence;
  const auto skew = metric_value(record, "arrival_skew"), transfer = metric_value(record, "transfer");
  if (skew && transfer && *skew > *transfer) return missing("ranks that arrive together");
  if (!share->muted) return evidence;
  evidence.remark = "; " + share->by_muting();
  // What muting saved is measured whole. The wait leaves out how much the exchange slows the computation beside it, and
  // counts time that other ranks make use of. A faster exchange still waits for the last rank.
  const double late = std::max(0.0, skew.value_or(0)) / *step_metric(record)->value;
  if (late >= 0.01) evidence.remark += fmt::format("; {:.2g} % of the step waits for the last rank", 100 * late);
  if (*share->muted - late < 1) evidence.saved = std::max(0.0, *share->muted - late);
  return evidence;
}

Evidence throttled_share(const Record& record) {
  if (!record.samples.throttled || record.samples.count == 0)
    return missing("a GPU whose driver counts throttled time");
  return number(static_cast<double>(record.samples.throttled->size()) / static_cast<double>(record.samples.count));
}

Evidence mean_of_series(const Record& record, std::string_view name, const char* needs) {
  const auto found = record.telemetry.find(std::string(name));
  double sum = 0;
  int count = 0;
  if (found != record.telemetry.end())
    for (const auto& value : found->second.values)
      if (value && std::isfinite(*value)) sum += *value, ++count;
  return count > 0 ? number(sum / count) : missing(needs);
}

Evidence cpu_wait_share(const Record& record) {
  if (!is_training(record)) return missing("a training step");
  Evidence evidence = mean_of_series(record, "cpu_wait", "a kernel that counts how long threads wait for a CPU");
  if (evidence.number) evidence.saved = evidence.number->value;
  return evidence;
}

Evidence quota_share(const Record& record) {
  const auto& outside = record.outside_cpu;
  if (!outside || !outside->throttled || outside->usable <= 0) return missing("a cgroup that counts its quota's use");
  return number(std::min(1.0, *outside->throttled / outside->usable));
}

Evidence stall_share(const Entry& entry) {
  constexpr std::size_t min_steps = 20;
  constexpr double sigmas = 3, min_sigma = 0.05;
  if (!is_training(*entry.record) || !find_metric(*entry.record, "step_time")) return missing("training steps");
  const std::vector<double> steps = samples_of(entry).values;
  if (steps.size() < min_steps) return missing("at least 20 training steps");
  const double middle = median(steps);
  const double sigma = std::max(robust_sigma(steps), min_sigma * middle);
  double above = 0, all = 0;
  for (const double step : steps) {
    all += step;
    if (step > middle + sigmas * sigma) above += step - middle;
  }
  return all > 0 ? number(above / all, above / all) : missing("training steps");
}

Evidence distant_ranks_share(const Entry& entry) {
  constexpr const char* needs = "ranks on GPUs whose NUMA nodes are known";
  double distant = 0, known = 0;
  const Json& gpus = member(entry.run->run, "/environment/gpus");
  for (const RankResult& rank : entry.record->ranks) {
    if (rank.pci.empty() || !rank.numa_node || !gpus.is_array()) continue;
    for (const Json& gpu : gpus)
      if (const auto node = number_member(gpu, "/numa_node"); node && text_member(gpu, "/pci") == rank.pci) {
        known += 1;
        distant += *node != *rank.numa_node ? 1 : 0;
      }
  }
  return known > 0 ? number(distant / known) : missing(needs);
}

// Bytes of all caches of the highest level; absent if the run does not tell.
std::optional<double> last_level_cache(const RunData& run) {
  std::optional<double> bytes;
  double highest = 0;
  const Json& caches = member(run.run, "/environment/cpu/caches");
  if (!caches.is_array()) return bytes;
  for (const Json& cache : caches) {
    const auto level = number_member(cache, "/level"), size = number_member(cache, "/bytes");
    if (!level || !size || *level < highest) continue;
    highest = *level;
    bytes = *size * number_member(cache, "/count").value_or(1);
  }
  return bytes;
}

Evidence ridge_ratio(const Entry& entry, std::span<const Entry> of_run) {
  const Record& record = *entry.record;
  if (!is_training(record)) return missing("a training step");
  if (record.device != "cpu") return missing("a GPU that reports its memory's activity");
  const auto intensity = training_intensity(record);
  if (!intensity || !(*intensity > 0)) return missing("a training step with its FLOPs and planned memory");
  // One core has a share of the bandwidth of its own.
  if (const std::string threads = param_text(record, "threads"); !threads.empty() && threads != "all")
    return missing("a step on all cores");
  const auto cache = last_level_cache(*entry.run);
  if (!cache) return missing("the sizes of the CPU's caches");
  if (*metric_value(record, "planned_memory") * record.world_ranks / units_of(record, true) < *cache)
    return missing("a step larger than the CPU's caches");
  std::vector<const Entry*> entries;
  for (const Entry& other : of_run) entries.push_back(&other);
  const auto compute = measured_compute(entries, record.device, param_text(record, "precision"));
  const auto memory = measured_memory(entries, record.device);
  if (!compute || !memory || memory->entry->record->attribute("level").value_or("memory") != "memory")
    return missing("the families peak and memory in the same run");
  Evidence evidence = number(compute->value / memory->value / *intensity);
  if (compute->range && memory->range && memory->range->low > 0)
    evidence.number->interval = Interval{compute->range->low / memory->range->high / *intensity,
                                         compute->range->high / memory->range->low / *intensity};
  return evidence;
}

// A ratio of rates that another case of the run, or a bound, gives.
Evidence faster(double ratio, std::string other, bool at_most) {
  Evidence evidence = number(ratio, ratio > 1 ? 1 - 1 / ratio : 0);
  evidence.other = std::move(other);
  evidence.at_most = at_most;
  return evidence;
}

// The fastest other case of the run that differs only in this parameter: its rate over this one's.
template <typename Keep>
std::optional<std::pair<double, const Record*>> sibling(const Record& record, std::span<const Entry> of_run,
                                                        const std::string& param, Keep keep) {
  const Metric* own = headline_metric(record);
  if (!own || !(*own->value > 0) || !record.params.is_object() || !record.params.contains(param)) return std::nullopt;
  const auto others_of = [&](const Record& one) {
    Json params = one.params;
    params.erase(param);
    return params;
  };
  const Json others = others_of(record);
  std::optional<std::pair<double, const Record*>> best;
  for (const Entry& entry : of_run) {
    const Record& one = *entry.record;
    const Metric* rate = find_metric(one, own->name);
    if (one.family != record.family || one.device != record.device || one.world_ranks != record.world_ranks ||
        one.world_nodes != record.world_nodes || !usable(one) || !rate || !(*rate->value > 0) ||
        !one.params.is_object() || !one.params.contains(param) || one.params[param] == record.params[param] ||
        others_of(one) != others || !keep(one))
      continue;
    const double ratio = own->better == Better::lower ? *own->value / *rate->value : *rate->value / *own->value;
    if (!best || ratio > best->first) best = {ratio, &one};
  }
  return best;
}

Evidence precision_ratio(const Entry& entry, std::span<const Entry> of_run) {
  const Record& record = *entry.record;
  const std::string own = param_text(record, "precision");
  if (!is_training(record) || own.empty()) return missing("a training step");
  if (const auto other = sibling(record, of_run, "precision", [](const Record&) { return true; }))
    return faster(other->first,
                  fmt::format("the same step in {}, measured in this run,", param_text(*other->second, "precision")),
                  false);
  std::vector<const Entry*> entries;
  for (const Entry& one : of_run) entries.push_back(&one);
  const auto product = best_gemm(entries, record.device, own == "fp8" ? "fp8_e4m3" : own);
  std::optional<Evidence> best;
  // Whether losses bear 8 bits is not to be guessed from products.
  for (const char* dtype : {"tf32", "bf16", "fp16"})
    if (const auto other = best_gemm(entries, record.device, dtype); other && product && dtype != own)
      if (const double ratio = other->value / product->value; !best || ratio > best->number->value)
        best = faster(ratio, fmt::format("the best product in {} of this run", dtype), true);
  return best ? *best : missing("the same step, or products, in another precision in the same run");
}

Evidence fewer_threads_ratio(const Entry& entry, std::span<const Entry> of_run) {
  for (const char* param : {"threads", "workers"}) {
    const auto count = [&](const Record& record) {
      const auto given = param_number(record, param);
      return given ? given : whole_number<double>(record.attribute(param).value_or(""));
    };
    const auto own = count(*entry.record);
    const auto other = sibling(*entry.record, of_run, param,
                               [&](const Record& one) { return own && count(one) && *count(one) < *own; });
    if (other)
      return faster(other->first, fmt::format("the same case with {}={}", param, param_text(*other->second, param)),
                    false);
  }
  return missing("the same case on fewer threads in the same run");
}

Evidence store_ratio(const Entry& entry, std::span<const Entry> of_run) {
  const auto own = entry.record->attribute("store");
  const auto other =
      sibling(*entry.record, of_run, "store", [&](const Record& one) { return one.attribute("store") != own; });
  if (!other) return missing("the same loop with other stores in the same run");
  return faster(other->first,
                fmt::format("the same loop with {} stores", other->second->attribute("store").value_or("other")),
                false);
}

bool in_memory(const Record& record) {
  return record.family == "memory" && record.attribute("level").value_or("").starts_with("memory");
}

Evidence small_pages_share(const Record& record) {
  const auto page = record.attribute("page_size");
  if (!in_memory(record) || !page || record.device != "cpu")
    return missing("a case in memory whose page size is known");
  return number(*page == "4KiB" ? 1 : 0);
}

Evidence clock_shortfall_share(const Entry& entry) {
  const Record& record = *entry.record;
  if (record.device != "cpu" || (record.family != "gemm" && !is_training(record)))
    return missing("products or training");
  const Json& cpu = member(entry.run->run, "/environment/cpu");
  const Json& governors = member(cpu, "/governors");
  const auto highest = number_member(cpu, "/clocks_hz/max");
  if (!governors.is_object() || !highest || *highest <= 0) return missing("a kernel that sets the CPUs' clocks");
  if (governors.size() == 1 && governors.contains("performance")) return number(0);
  Evidence clock = mean_of_series(record, "clock", "the clock while the case was measured");
  if (!clock.number) return clock;
  const double lacking = std::clamp(1 - clock.number->value / *highest, 0.0, 1.0);
  Evidence evidence = number(lacking, lacking);
  evidence.at_most = true;
  return evidence;
}

Evidence empty_channels_share(const Entry& entry) {
  const Record& record = *entry.record;
  const std::string threads = param_text(record, "threads");
  if (record.device != "cpu" || !(in_memory(record) || is_training(record)) || find_metric(record, "latency") ||
      (!threads.empty() && threads != "all"))
    return missing("training, or streams of all threads from memory");
  const Json& memory = member(entry.run->run, "/environment/memory");
  const auto all = number_member(memory, "/channels/all"), populated = number_member(memory, "/channels/populated");
  if (!all || !populated || *all <= 0) return missing("memory channels that the kernel's EDAC driver lists");
  const double empty = std::clamp(1 - *populated / *all, 0.0, 1.0);
  Evidence evidence = number(empty, empty);
  evidence.at_most = true;
  return evidence;
}

}  // namespace

EvidenceSet evidence_of(const Entry& entry, std::span<const Entry> of_run) {
  const Record& record = *entry.record;
  const bool several = record.world_ranks > 1;
  const auto between_ranks = [&](const char* metric) {
    return several ? share_of_step(record, metric_value(record, metric), "communication timed by parts")
                   : missing("several ranks");
  };
  Evidence skew = between_ranks("arrival_skew");
  // On average ranks wait for less than what the slowest one takes longer. If not, it is another one in each step.
  if (const auto slowest = slowest_rank(record);
      slowest && skew.number && slowest->saved_by_pace() >= skew.number->value)
    slowest->explain(skew);
  return {{"data_wait_share", part_of_step(record, "data_wait")},
          {"communication_share", several ? communication_evidence(record) : missing("several ranks")},
          {"arrival_skew_share", std::move(skew)},
          {"pace_ratio", pace_ratio(record)},
          {"throttled_share", throttled_share(record)},
          {"dram_active", mean_of_series(record, "dram_active", "a GPU that reports its memory's activity")},
          {"quota_share", quota_share(record)},
          {"cpu_wait_share", cpu_wait_share(record)},
          {"stall_share", stall_share(entry)},
          {"distant_ranks_share", distant_ranks_share(entry)},
          {"gpu_idle_share", share_of_step(record, traced_span(record, "gpu_idle:step"), "a GPU, and --trace")},
          {"exposed_copies_share", share_of_step(record, traced_span(record, "exposed_copies"),
                                                 "a trace of a GPU (assay watch, import kineto)")},
          {"ridge_ratio", ridge_ratio(entry, of_run)},
          {"precision_ratio", precision_ratio(entry, of_run)},
          {"fewer_threads_ratio", fewer_threads_ratio(entry, of_run)},
          {"store_ratio", store_ratio(entry, of_run)},
          {"small_pages_share", small_pages_share(record)},
          {"clock_shortfall_share", clock_shortfall_share(entry)},
          {"empty_channels_share", empty_channels_share(entry)}};
}

const std::vector<std::string>& evidence_names() {
  static const std::vector<std::string> names = [] {
    static const Record record;
    static const RunData run;
    std::vector<std::string> all;
    for (const auto& [name, evidence] : evidence_of({&run, &record})) all.push_back(name);
    return all;
  }();
  return names;
}

}  // namespace assay::report
