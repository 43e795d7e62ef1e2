#include "reports/diagnosis/evidence.h"

#include "harness/json/json.h"
#include "harness/runs/figures.h"
#include "harness/runs/step_shares.h"
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
  if (const auto skew = metric_value(record, "arrival_skew"), transfer = metric_value(record, "transfer");
      skew && transfer && *skew > *transfer)
    return missing("ranks that arrive together");
  // What muting saved was measured; the rest of the wait would be there without the exchange, too.
  if (share->muted) {
    evidence.saved = std::clamp(*share->muted, 0.0, share->pending);
    evidence.remark = "; " + share->by_muting();
  }
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
          {"gpu_idle_share", share_of_step(record, span_of(record, "gpu_idle:step"), "a GPU, and --trace")},
          {"ridge_ratio", ridge_ratio(entry, of_run)}};
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
