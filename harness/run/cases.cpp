#include "harness/run/cases.h"

#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/hosts/placement.h"

#include <algorithm>
#include <set>
#include <utility>

namespace assay {

namespace {

// A case may take so much longer than estimated before it counts as hung.
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

// What is left to do, each case with what the records say of it.
class Todo {
 public:
  Todo(const RunRequest& request, const Prepared& prepared, const std::map<std::string, std::string>& labels)
      : request_(request), prepared_(prepared), labels_(labels) {
    if (!prepared.before) return;
    kept_ = prepared.before->final_records();
    for (const Record& record : kept_) last_[record.identity().unplaced()].push_back(&record);
  }

  // The jobs of one world size; skips that need no worker are handed to `skip`.
  std::vector<Job> jobs(int ranks, const Supervisor::Sink& skip);

 private:
  // The last record of the case on these hosts; null when there is none.
  const Record* last(const PlannedCase& planned) const;

  const RunRequest& request_;
  const Prepared& prepared_;
  const std::map<std::string, std::string>& labels_;
  std::vector<Record> kept_;
  std::map<Identity, std::vector<const Record*>> last_;
};

const Record* Todo::last(const PlannedCase& planned) const {
  const auto found = last_.find(identity_of(planned, request_.plan.device));
  if (found == last_.end()) return nullptr;
  // Of several hosts any will do: an allocation holds others each time.
  const bool any_host = prepared_.hosts.agents != nullptr;
  for (const Record* record : found->second) {
    const std::vector<std::string> hosts = record->identity().hosts;
    if (any_host || hosts.empty() || hosts == std::vector<std::string>{this_host()}) return record;
  }
  return nullptr;
}

std::vector<Job> Todo::jobs(int ranks, const Supervisor::Sink& skip) {
  std::vector<Job> jobs;
  std::vector<std::string> flags = request_.flags;
  const std::optional<std::string> no_place = without_place(request_, prepared_.hosts, ranks);
  if (ranks > 1 && !no_place) {
    const Placement placement = place(request_, prepared_.hosts, ranks);
    if (placement.oversubscribed) flags.push_back("oversubscribed");
    if (placement.one_machine) flags.push_back("hosts are one machine");
  }
  for (const PlannedCase& planned : prepared_.plan.cases) {
    if (planned.ranks != ranks) continue;
    const Record* before = last(planned);
    if (before && before->status != Status::error) continue;
    Job job;
    job.order = {planned.family,
                 planned.params,
                 planned.key,
                 World{ranks, 1, prepared_.hosts.infos.front().cpu_count, request_.plan.device},
                 planned.seed,
                 before ? before->attempt + 1 : 1,
                 planned.protocol,
                 labels_,
                 flags,
                 request_.faults,
                 {}};
    job.timeout_seconds = timeout_of(planned);
    job.estimated_seconds = planned.estimated_seconds;
    if (request_.share_gpu && ranks > 1) job.order.flags.push_back("shared GPU");
    const auto lacking = no_place ? no_place : lacking_on(*planned.family, planned.params, request_.plan.device);
    if (lacking) {
      Record record = blank_record(job.order, request_.plan.device);
      record.ranks = {{0, prepared_.hosts.allocation.hosts.front().name, "", std::nullopt}};
      record.status = Status::skipped;
      record.reason = *lacking;
      skip(std::move(record));
      continue;
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// Jobs whose workers are started in one way, as groups in the order of their first jobs. Training's workers ask more of
// MPI, which would slow the collectives: groups of their own, after the others.
void split_by_workers(std::vector<Job> jobs, std::vector<std::vector<Job>>& groups) {
  using Start = std::pair<bool, std::map<std::string, std::string>>;
  std::vector<std::pair<Start, std::vector<Job>>> found;
  for (Job& job : jobs) {
    const Family& family = *job.order.family;
    Start start{job.order.world.ranks > 1 && family.workload, environment_of(family, job.order.params)};
    auto place = std::find_if(found.begin(), found.end(), [&](const auto& one) { return one.first == start; });
    if (place == found.end()) place = found.insert(found.end(), {std::move(start), {}});
    place->second.push_back(std::move(job));
  }
  std::stable_partition(found.begin(), found.end(), [](const auto& one) { return !one.first.first; });
  for (auto& one : found) groups.push_back(std::move(one.second));
}

}  // namespace

std::optional<std::string> without_place(const RunRequest& request, const std::vector<AllocatedHost>& slots,
                                         const std::vector<HostInfo>& hosts, int ranks) {
  if (ranks == 1 || request.plan.device == DeviceKind::cpu || !request.plan.ranks.empty()) return std::nullopt;
  try {
    place_ranks(slots, hosts, {ranks, request.plan.device, request.share_gpu, request.allocation.origin});
  } catch (const UsageError& error) {
    return error.what();
  }
  return std::nullopt;
}

void settle_launcher(const RunRequest& request, Prepared& prepared) {
  int most = 1;
  for (const PlannedCase& planned : prepared.plan.cases)
    if (!lacking_on(*planned.family, planned.params, request.plan.device) &&
        !without_place(request, prepared.hosts, planned.ranks))
      most = std::max(most, planned.ranks);
  if (most > 1) {
    prepared.several_ranks = choose_launcher(most, request.plan.device);
    place(request, prepared.hosts, most);
  }
}

bool run_cases(const RunRequest& request, const Prepared& prepared, const std::map<std::string, std::string>& labels,
               const CaseSinks& sinks) {
  SupervisorOptions options;
  options.device = request.plan.device;
  options.cache_dir = cache_folder();
  options.trace = request.trace;
  options.share_gpu = request.share_gpu;
  options.run_dir = sinks.run_dir;
  options.keep_file = sinks.file;
  options.go_on = sinks.go_on;
  options.slots = prepared.hosts.allocation.hosts;
  options.hosts = prepared.hosts.infos;
  options.agents = prepared.hosts.agents.get();
  options.heartbeat_limit_seconds = seconds_from_environment("ASSAY_HEARTBEAT_LIMIT", options.heartbeat_limit_seconds);
  options.launch_limit_seconds = seconds_from_environment("ASSAY_LAUNCH_LIMIT", options.launch_limit_seconds);

  std::vector<MeasuredPeak> peaks;
  if (prepared.before)
    for (const Record& record : prepared.before->final_records())
      if (auto peak = measured_peak(record)) peaks.push_back(std::move(*peak));
  const Supervisor::Sink keep = [&](Record record) {
    if (auto peak = measured_peak(record)) peaks.push_back(std::move(*peak));
    sinks.record(std::move(record));
  };

  Todo todo(request, prepared, labels);
  std::set<int> sizes;
  for (const PlannedCase& planned : prepared.plan.cases) sizes.insert(planned.ranks);
  double seconds = 0;
  std::size_t cases = 0;
  std::vector<std::vector<Job>> groups;
  for (const int ranks : sizes) {
    std::vector<Job> jobs = todo.jobs(ranks, keep);
    for (const Job& job : jobs) seconds += job.estimated_seconds, ++cases;
    split_by_workers(std::move(jobs), groups);
  }
  const std::unique_ptr<Progress> progress = sinks.progress(cases, seconds);
  Supervisor supervisor(options, prepared.several_ranks, peaks, *progress, keep);
  bool complete = true;
  for (std::vector<Job>& jobs : groups)
    if (!jobs.empty() && !supervisor.run(std::move(jobs))) {
      complete = false;
      break;
    }
  if (request.trace && sinks.timelines) sinks.timelines(supervisor.take_timelines(), *progress);
  return complete;
}

}  // namespace assay
