#include "harness/watch/diagnosis.h"

#include "harness/core/configs.h"
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/watch/machine_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::watch {
namespace {

// Fractions of a step, as `assay diagnose` judges them.
double data_limit() { return warns_from("data-starved", "data_wait_share"); }
double stall_limit() { return warns_from("stalls", "stall_share"); }
double wait_limit() { return warns_from("cpu-oversubscribed", "cpu_wait_share"); }
double quota_limit() { return warns_from("cpu-oversubscribed", "quota_share"); }
// With the noise of host clocks and shared cores a wait for ranks below 5 % occurs in sound jobs too.
constexpr double imbalance_limit = 0.05, communication_limit = 0.05, checkpoint_limit = 0.03;
// Of ranks that are alike one is always last: of two whose own times scatter by 8 %, by 9 % of it. On shared cores
// sound jobs had up to 13 %.
constexpr double in_turn_limit = 0.15;
constexpr double max_stalls = 0.2, idle_limit = 0.10;
constexpr double memory_limit = 0.90, outside_limit = 0.25, busy_worker = 0.75, blocked_worker = 0.3;

double gain_of(double saved_share) { return 1 / std::max(0.01, 1 - saved_share); }

int idle_cpus(const Surroundings& around) {
  return static_cast<int>(std::floor(around.cpus - around.job_cpus - around.outside.value_or(0) + 0.25));
}

std::string loader_change(double share, const JobSteps& steps, const Surroundings& around) {
  const int idle = idle_cpus(around);
  if (around.workers.asked == 0) {
    const int enough = static_cast<int>(std::ceil(share / (1 - std::min(share, 0.95)))) + 1;
    // Workers need CPUs only for what they compute.
    const double computes = around.cpu_times && !around.cuda ? std::clamp(steps.loading() / share, 0.05, 1.0) : 1;
    const double room = around.cpus / std::max(1, around.ranks) / computes;
    return fmt::format("the step itself loads its data{} -> DataLoader(num_workers={})",
                       computes < 0.5 ? ", and mostly waits for it" : "",
                       std::clamp(enough, 1, std::max(1, static_cast<int>(room))));
  }
  const Workers& workers = around.workers;
  const int more = static_cast<int>(std::ceil(workers.asked / (1 - std::min(share, 0.95)))) + 1;
  if (!workers.cpu_each)
    return fmt::format("{} cannot keep up -> num_workers={}", plural(workers.asked, "worker"),
                       std::min(more, workers.asked + std::max(1, idle / around.ranks)));
  const std::string each = fmt::format("{} at {:.0f} % CPU", plural(workers.asked, "worker"), 100 * *workers.cpu_each);
  if (workers.blocked >= blocked_worker)
    return fmt::format(
        "{}, waiting for storage {:.0f} % of the time -> a faster disk, fewer and larger files, or data "
        "kept in memory",
        each, 100 * workers.blocked);
  if (*workers.cpu_each < busy_worker)
    return fmt::format(
        "{}, which mostly wait: for a lock, the network or each other -> num_workers={} or a larger "
        "prefetch_factor",
        each, more);
  if (idle >= around.ranks)
    return fmt::format("{}, {} -> num_workers={}", each, plural(idle, "idle CPU"),
                       std::min(more, workers.asked + idle / around.ranks));
  return fmt::format("{}, no idle CPU -> cheaper decoding, smaller images, or data prepared once", each);
}

const char* name_for_people(Part part) {
  switch (part) {
    case Part::data_wait: return "loader";
    case Part::forward: return "forward pass, or what else it does";
    case Part::backward: return "backward pass";
    case Part::optimizer: return "optimizer";
    case Part::checkpoint: return "checkpoint";
    default: return "communication";
  }
}

void data(const JobSteps& steps, const Surroundings& around, std::vector<Diagnosis>& found) {
  const double share = steps.share(Part::data_wait);
  if (share < data_limit()) return;
  found.push_back({"data-starved", fmt::format("{:.0f} % of a step waits for data", 100 * share),
                   loader_change(share, steps, around), gain_of(share)});
}

void ranks(const JobSteps& steps, std::vector<Diagnosis>& found) {
  const double communication = steps.share(Part::communication);
  if (communication >= communication_limit)
    found.push_back({"comm-exposed", fmt::format("{:.0f} % of a step is communication", 100 * communication),
                     "larger buckets (bucket_cap_mb=100), or gradients of several micro-batches before each exchange",
                     gain_of(communication)});
  if (!steps.straggler || steps.step <= 0) return;
  const Straggler& slow = *steps.straggler;
  const double saved = slow.saved / steps.step, in_turn = slow.in_turn / steps.step;
  if (steps.share(Part::waiting) < imbalance_limit / 2) return;
  if (slow.persistent && saved >= imbalance_limit)
    found.push_back({"imbalance",
                     fmt::format("the others wait for rank {}{}: its {} takes longer, in {:.0f} % of the steps",
                                 slow.rank, slow.host.empty() ? "" : " on " + slow.host, name_for_people(slow.part),
                                 100 * slow.share_of_steps),
                     "look at what that rank has that the others have not: its data, its CPUs, other processes there",
                     gain_of(saved)});
  else if (in_turn >= in_turn_limit)
    found.push_back(
        {"imbalance",
         fmt::format("{:.0f} % of a step waits for the last rank, which is now this, now that", 100 * in_turn),
         "give the ranks equal work in each step: sort or pad samples by length", gain_of(in_turn)});
}

void processors(const JobSteps& steps, const Surroundings& around, std::vector<Diagnosis>& found) {
  const double used = std::max(around.job_cpus, 0.01);
  // A quota or a neighbour takes from the job at most what it would have used.
  if (around.quota && *around.quota / (used + *around.quota) >= quota_limit()) {
    const double share = *around.quota / (used + *around.quota);
    found.push_back({"quota", fmt::format("a CPU quota holds back {:.1f} CPUs", *around.quota),
                     "raise the container's quota, or use as many threads and workers as it grants", gain_of(share)});
    return;
  }
  if (!around.cpu_times) return;
  const double wait = steps.cpu_wait();
  if (wait < wait_limit()) return;
  const double gain = gain_of(wait);
  const int ranks = std::max(1, around.ranks), room = std::max(1, around.cpus / ranks);
  const int threads = around.threads, workers = around.workers.asked;
  if (around.outside && *around.outside >= outside_limit && used + *around.outside > 0.8 * around.cpus &&
      ranks * threads <= around.cpus) {
    found.push_back(
        {"neighbours",
         fmt::format("others use {:.1f} of {} CPUs{}, and a rank waits for one {:.0f} % of its time", *around.outside,
                     around.cpus, around.outside_names.empty() ? "" : " (" + around.outside_names + ")", 100 * wait),
         "run it where nobody else computes, or with CPUs of its own (taskset, a cpuset)", gain});
  } else if (ranks * (threads + workers) > around.cpus) {
    std::string change = "more CPUs, or fewer ranks";
    if (threads > std::max(1, room - workers))
      change = fmt::format("OMP_NUM_THREADS={}", std::max(1, room - workers));
    else if (workers > std::max(1, room - threads))
      change = fmt::format("DataLoader(num_workers={})", std::max(1, room - threads));
    found.push_back({"cpu-oversubscribed",
                     fmt::format("{} of {}{} for {} CPUs, and a rank waits for one {:.0f} % of its time",
                                 plural(ranks, "rank"), plural(threads, "thread"),
                                 workers > 0 ? " and " + plural(workers, "worker") : "", around.cpus, 100 * wait),
                     change, gain});
  }
}

void pauses(const JobSteps& steps, const Surroundings& around, std::vector<Diagnosis>& found) {
  const double saving = steps.share(Part::checkpoint);
  const std::string every = steps.stalls.every ? fmt::format(", every {} steps", *steps.stalls.every) : "";
  if (saving >= checkpoint_limit) {
    found.push_back({"stalls", fmt::format("{:.0f} % of the time is spent in torch.save{}", 100 * saving, every),
                     "save less often, or in the background (torch.distributed.checkpoint.async_save)",
                     gain_of(saving)});
  } else if (steps.stalls.share >= stall_limit() && !steps.stalls.of_passes &&
             steps.share(Part::data_wait) < data_limit() && steps.cpu_wait() < wait_limit() &&
             static_cast<double>(steps.stalls.count) <= max_stalls * static_cast<double>(steps.seconds.size())) {
    found.push_back(
        {"stalls",
         fmt::format("{} far longer than the others: {:.0f} % of the time{}",
                     steps.stalls.count == 1 ? "1 step takes" : plural(steps.stalls.count, "step") + " take",
                     100 * steps.stalls.share, every),
         steps.stalls.count == 1
             ? fmt::format("look at what the job does in step {}", steps.stalls.first)
             : fmt::format("look at what the job does in steps {} to {}", steps.stalls.first, steps.stalls.last),
         gain_of(steps.stalls.share)});
  }
  if (around.cuda || !around.cpu_times) return;  // its host waits for the GPU
  const double idle = steps.off_cpu();
  if (idle >= idle_limit)
    found.push_back(
        {"host-idle",
         fmt::format("for {:.0f} % of a step its thread neither computes nor waits for data or ranks", 100 * idle),
         "look for sleeps, locks, files and network inside the step: logging, metrics, tokenizing", gain_of(idle)});
}

}  // namespace

double warns_from(const char* rule, const char* evidence) {
  static const Json shipped = read_json(find_config("diagnosis", "rules file", "rules"));
  for (const Json& one : shipped.at("rules"))
    if (one.at("id") == rule && one.at("evidence") == evidence) {
      const Json& warn = one.at("warn");
      return warn.is_string() ? parse_fraction(warn.get<std::string>()) : warn.get<double>();
    }
  throw UsageError(fmt::format("configs/diagnosis/rules.json: has no rule {} about {}", rule, evidence));
}

std::vector<Diagnosis> diagnose(const JobSteps& steps, const Surroundings& around) {
  std::vector<Diagnosis> found;
  data(steps, around, found);
  ranks(steps, found);
  processors(steps, around, found);
  pauses(steps, around, found);
  if (around.memory && around.memory_room && *around.memory > memory_limit * *around.memory_room)
    found.push_back(
        {"memory-edge",
         fmt::format("it has used {} of {}", format_bytes(*around.memory), format_bytes(*around.memory_room)),
         "a smaller batch, fewer workers or less prefetching, before it is killed", 1});
  add_machine_rules(steps, around, found);
  std::ranges::stable_sort(found, [](const Diagnosis& a, const Diagnosis& b) { return a.gain > b.gain; });
  return found;
}

std::vector<std::string> not_the_cause(const JobSteps& steps, const Surroundings& around) {
  std::vector<std::string> sound;
  if (steps.share(Part::data_wait) < data_limit())
    sound.push_back(fmt::format("data ({:.1f} %)", 100 * steps.share(Part::data_wait)));
  if (around.ranks > 1 && steps.share(Part::communication) < communication_limit)
    sound.push_back(fmt::format("communication ({:.1f} %)", 100 * steps.share(Part::communication)));
  if (around.memory && around.memory_room && *around.memory <= memory_limit * *around.memory_room)
    sound.push_back(fmt::format("memory ({} of {})", format_bytes(*around.memory), format_bytes(*around.memory_room)));
  if (around.cpu_times && steps.cpu_wait() < wait_limit())
    sound.push_back(fmt::format("CPUs ({:.0f} % wait)", 100 * steps.cpu_wait()));
  return sound;
}

}  // namespace assay::watch
