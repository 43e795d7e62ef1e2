#include "harness/run/cases.h"

#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/hosts/placement.h"
#include "harness/hosts/worker_group.h"
#include "harness/record/flags.h"
#include "harness/record/record.h"
#include "harness/run/supervisor.h"

#include <algorithm>
#include <set>
#include <utility>

namespace assay {

namespace {

// A case counts as hung after this multiple of its estimate.
constexpr double timeout_factor = 10;
constexpr double timeout_floor_seconds = 120;

Placement place(const RunRequest& request, const Hosts& hosts, int ranks) {
  return place_ranks(hosts.allocation.hosts, hosts.infos,
                     {ranks, request.plan.device, request.share_gpu, hosts.allocation.origin});
}

std::optional<std::string> without_place(const RunRequest& request, const Hosts& hosts, int ranks) {
  return without_place(request, hosts.allocation.hosts, hosts.infos, ranks);
}

double timeout_of(const PlannedCase& planned) {
  if (planned.timeout_seconds > 0) return planned.timeout_seconds;
  return std::max(timeout_floor_seconds, timeout_factor * planned.estimated_seconds);
}

// The cases left to do, given the final records of the run so far.
class Todo {
 public:
  Todo(const RunRequest& request, const Prepared& prepared, const std::map<std::string, std::string>& labels)
      : request_(request), prepared_(prepared), labels_(labels) {
    if (!prepared.before) return;
    for (Record& record : prepared.before->final_records()) {
      const Identity identity = record.identity().unplaced();
      finals_[identity].push_back(std::move(record));
    }
  }

  // The jobs of one world size; records of skips that need no worker go to `sink`.
  std::vector<Job> jobs(int ranks, RunSink& sink);

 private:
  // The final record of the case on these hosts; null if there is none.
  const Record* last(const PlannedCase& planned) const;

  const RunRequest& request_;
  const Prepared& prepared_;
  const std::map<std::string, std::string>& labels_;
  std::map<Identity, std::vector<Record>> finals_;
};

const Record* Todo::last(const PlannedCase& planned) const {
  const auto found = finals_.find(identity_of(planned, request_.plan.device));
  if (found == finals_.end()) return nullptr;
  // With several hosts, records from any hosts count: each allocation has others.
  const bool any_host = prepared_.hosts.agents != nullptr;
  for (const Record& record : found->second) {
    const std::vector<std::string> hosts = record.identity().hosts;
    if (any_host || hosts.empty() || hosts == std::vector<std::string>{this_host()}) return &record;
  }
  return nullptr;
}

std::vector<Job> Todo::jobs(int ranks, RunSink& sink) {
  std::vector<Job> jobs;
  std::vector<std::string> flags = request_.flags;
  const std::optional<std::string> no_place = without_place(request_, prepared_.hosts, ranks);
  if (ranks > 1 && !no_place) {
    const Placement placement = place(request_, prepared_.hosts, ranks);
    if (placement.oversubscribed) flags.emplace_back(flag::oversubscribed);
    if (placement.one_machine) flags.emplace_back(flag::one_machine);
  }
  for (const PlannedCase& planned : prepared_.plan.cases) {
    if (planned.ranks != ranks) continue;
    const Record* before = last(planned);
    if (before && before->status != Status::error) continue;
    Job job;
    job.order = {.family = planned.family,
                 .params = planned.params,
                 .key = planned.key,
                 .world = World{ranks, 1, prepared_.hosts.infos.front().cpu_count, request_.plan.device},
                 .seed = planned.seed,
                 .attempt = before ? before->attempt + 1 : 1,
                 .protocol = planned.protocol,
                 .labels = labels_,
                 .flags = flags,
                 .faults = request_.faults,
                 .peaks = {}};
    job.timeout_seconds = timeout_of(planned);
    job.estimated_seconds = planned.estimated_seconds;
    if (!planned.sweep.empty()) job.order.labels["sweep"] = planned.sweep;
    if (request_.share_gpu && ranks > 1) job.order.flags.emplace_back(flag::shared_gpu);
    auto lacking = no_place ? no_place : lacking_on(*planned.family, planned.params, request_.plan.device);
    if (!planned.unfit.empty()) lacking = planned.unfit;
    if (lacking) {
      Record record = blank_record(job.order, request_.plan.device);
      record.ranks = {{0, prepared_.hosts.allocation.hosts.front().name, "", std::nullopt}};
      record.status = Status::skipped;
      record.reason = *lacking;
      if (!planned.unfit.empty()) record.flags.emplace_back(flag::does_not_fit);
      sink.record(std::move(record));
      continue;
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// Groups of jobs whose workers are started in the same way, in the order of their first jobs. Training's workers need
// an MPI mode that slows collectives, so their groups are separate and come last.
void split_by_workers(std::vector<Job> jobs, std::vector<std::vector<Job>>& groups) {
  using Start = std::pair<bool, std::map<std::string, std::string>>;
  std::vector<std::pair<Start, std::vector<Job>>> found;
  for (Job& job : jobs) {
    const Family& family = *job.order.family;
    Start start{job.order.world.ranks > 1 && family.workload, environment_of(family, job.order.params)};
    auto place = std::find_if(found.begin(), found.end(), [&](const auto& one) { return one.first == start; });
    if (place == found.end()) place = found.emplace(found.end(), std::move(start), std::vector<Job>());
    place->second.push_back(std::move(job));
  }
  std::stable_partition(found.begin(), found.end(), [](const auto& one) { return !one.first.first; });
  for (auto& one : found) groups.push_back(std::move(one.second));
}

}  // namespace

std::optional<std::string> without_place(const RunRequest& request, const std::vector<AllocatedHost>& slots,
                                         const std::vector<HostInfo>& hosts, int ranks) {
  if (ranks == 1 || !request.plan.ranks.empty()) return std::nullopt;
  if (request.plan.device == DeviceKind::cpu) return missing_launcher(ranks, request.plan.device);
  try {
    place_ranks(slots, hosts, {ranks, request.plan.device, request.share_gpu, request.allocation.origin});
  } catch (const UsageError& error) {
    return error.what();
  }
  return std::nullopt;
}

void settle_launcher(const RunRequest& request, Prepared& prepared) {
  int largest_world = 1;
  for (const PlannedCase& planned : prepared.plan.cases)
    if (!lacking_on(*planned.family, planned.params, request.plan.device) &&
        !without_place(request, prepared.hosts, planned.ranks))
      largest_world = std::max(largest_world, planned.ranks);
  if (largest_world > 1) {
    prepared.several_ranks = choose_launcher(largest_world, request.plan.device);
    place(request, prepared.hosts, largest_world);
  }
}

bool run_cases(const RunRequest& request, const Prepared& prepared, const std::map<std::string, std::string>& labels,
               Progress& progress, RunSink& sink) {
  Todo todo(request, prepared, labels);
  std::set<int> sizes;
  for (const PlannedCase& planned : prepared.plan.cases) sizes.insert(planned.ranks);
  double seconds = 0;
  std::size_t cases = 0;
  std::vector<std::vector<Job>> groups;
  for (const int ranks : sizes) {
    std::vector<Job> jobs = todo.jobs(ranks, sink);
    for (const Job& job : jobs) seconds += job.estimated_seconds, ++cases;
    split_by_workers(std::move(jobs), groups);
  }
  progress.start(cases, seconds);

  SupervisorOptions options;
  options.slots = prepared.hosts.allocation.hosts;
  options.hosts = prepared.hosts.infos;
  options.agents = prepared.hosts.agents.get();
  options.device = request.plan.device;
  options.several_ranks = prepared.several_ranks;
  options.cache_dir = cache_folder();
  if (prepared.before)
    for (const Record& record : prepared.before->final_records()) {
      options.sweeps.learn(record);
      if (auto peak = measured_peak(record)) options.peaks.push_back(std::move(*peak));
    }
  options.trace = request.trace;
  options.share_gpu = request.share_gpu;
  options.launch_limit_seconds = launch_limit();
  Supervisor supervisor(std::move(options), progress, sink);
  const bool complete = std::all_of(groups.begin(), groups.end(),
                                    [&](std::vector<Job>& jobs) { return supervisor.run(std::move(jobs)); });
  if (request.trace) sink.timelines(supervisor.release_timelines());
  return complete;
}

}  // namespace assay
