// A run from its request to its exit code: plan, directory, supervisor, results.
#include "harness/run/run.h"

#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/units.h"
#include "harness/core/version.h"
#include "harness/device/cpu/team.h"
#include "harness/launch/placement.h"
#include "harness/record/run_dir.h"
#include "harness/run/hosts.h"
#include "harness/run/results.h"
#include "harness/run/supervisor.h"
#include "harness/telemetry/environment.h"
#include "harness/telemetry/findings.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <set>

namespace assay {

namespace fs = std::filesystem;

namespace {

// A case may take so much longer than estimated before it counts as hung.
constexpr double timeout_factor = 10;
constexpr double timeout_floor_seconds = 120;

fs::path default_out() {
  std::string name = utc_now();
  std::replace(name.begin(), name.end(), ':', '-');
  name.pop_back();  // the Z
  fs::path path = fs::path("runs") / name;
  for (int i = 2; fs::exists(path); ++i) path = fs::path("runs") / fmt::format("{}-{}", name, i);
  return path;
}

double seconds_from_environment(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? parse_seconds(text) : otherwise;
}

// The first case by which two plans differ, as a person says it.
std::string difference(const Json& asked, const Json& kept) {
  const Json none = Json::array();
  const Json& a = asked.contains("cases") ? asked["cases"] : none;
  const Json& b = kept.contains("cases") ? kept["cases"] : none;
  const auto word = [](const Json& one) {
    return fmt::format("{} ({} ranks)", one.value("key", "?"), one.value("ranks", 1));
  };
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (a[i] != b[i]) {
      if (word(a[i]) == word(b[i])) return fmt::format("case {}, {}, has another seed or protocol", i + 1, word(a[i]));
      return fmt::format("case {} is {}, the run's is {}", i + 1, word(a[i]), word(b[i]));
    }
  return fmt::format("it has {} cases, the run {}", a.size(), b.size());
}

struct Prepared {
  Plan plan;
  std::optional<RunData> before;  // what a resumed run holds already
  LauncherKind several_ranks = LauncherKind::mpirun;
  Hosts hosts;
};

Placement place(const RunRequest& request, const Hosts& hosts, int ranks) {
  return place_ranks(hosts.allocation.hosts, hosts.infos,
                     {ranks, request.plan.device, request.share_gpu, hosts.allocation.origin});
}

DeviceKind device_of(const Json& run) {
  const auto device = run.find("device");
  return device_kind_from(device != run.end() && device->is_string() ? device->get<std::string>() : "")
      .value_or(DeviceKind::cpu);
}

// The plan of this run, new or resumed.
void read_plan(const RunRequest& request, std::span<const Family> families, Prepared& prepared) {
  if (request.resume) {
    prepared.before = read_run(*request.resume);
    const Json& run = prepared.before->run;
    const std::string source = (*request.resume / "run.json").string();
    if (!run.contains("plan") || !run["plan"].is_object())
      throw UsageError(fmt::format("{}: holds no plan to resume", source));
    if (device_of(run) != request.plan.device)
      throw UsageError(fmt::format("--device {}: {} was measured on {}", name_of(request.plan.device),
                                   request.resume->string(), name_of(device_of(run))));
    if (request.plan.targets.empty()) {
      prepared.plan = plan_from_expanded(run["plan"], source, families, request.limits.cpus, request.plan.device);
    } else {
      prepared.plan = expand_plan(request.plan, families, request.limits);
      const Json asked = prepared.plan.expanded();
      if (!same_work(asked, run["plan"]))
        throw UsageError(fmt::format("--resume {}: the plan is not the run's: {}", request.resume->string(),
                                     difference(asked, run["plan"])));
    }
    if (request.plan.timeout_seconds)
      for (PlannedCase& planned : prepared.plan.cases) planned.timeout_seconds = *request.plan.timeout_seconds;
  } else {
    prepared.plan = expand_plan(request.plan, families, request.limits);
  }
}

// Everything that can be refused is refused by here, before the first case.
void settle_launcher(const RunRequest& request, Prepared& prepared) {
  int most = 1;
  for (const PlannedCase& planned : prepared.plan.cases)
    if (!lacking_on(*planned.family, planned.params, request.plan.device)) most = std::max(most, planned.ranks);
  if (most > 1) {
    prepared.several_ranks = choose_launcher(most, request.plan.device);
    place(request, prepared.hosts, most);
  }
}

Json run_json(const RunRequest& request, const Prepared& prepared) {
  Json json = {
      {"schema", record_schema}, {"started", utc_now()}, {"finished", nullptr}, {"argv", request.command_line}};
  json["version"] = build_info().version;
  json["git"] = {{"commit", build_info().commit}, {"dirty", build_info().dirty}};
  json["device"] = name_of(request.plan.device);
  json["labels"] = Json::object();
  for (const auto& [name, value] : prepared.plan.labels) json["labels"][name] = value;
  for (const auto& [name, value] : request.labels) json["labels"][name] = value;
  json["plan"] = prepared.plan.expanded();
  const Machine machine = probe_machine();
  json["environment"] = environment_json(machine);
  std::vector<Finding> findings = find_spoilers(machine, present_circumstances());
  if (prepared.hosts.agents) {
    json["hosts"] = hosts_json(prepared.hosts);
    for (const std::string& seen : prepared.hosts.agents->clock_findings())
      findings.push_back({"clock", Severity::warning, seen, "logs and files of the hosts cannot be laid side by side",
                          "run a time service on every host: chronyc makestep"});
  }
  json["findings"] = to_json(findings);
  return json;
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
    for (const Record& record : prepared.before->final_records())
      last_[name_of_record(record)].push_back(&record_of(record));
  }

  // The jobs of one world size; skips that need no worker are handed to `skip`.
  std::vector<Job> jobs(int ranks, const Supervisor::Sink& skip);

 private:
  static std::string text(const std::string& key, int ranks, std::uint64_t seed, const std::string& device) {
    return fmt::format("{}\n{}\n{}\n{}", key, ranks, seed, device);
  }
  static std::string name_of_record(const Record& record) {
    return text(record.key, record.world_ranks, record.seed, record.device);
  }
  const Record& record_of(const Record& record) { return kept_.emplace_back(record); }
  // The last record of the case on these hosts; null when there is none.
  const Record* last(const PlannedCase& planned) const;

  const RunRequest& request_;
  const Prepared& prepared_;
  const std::map<std::string, std::string>& labels_;
  std::deque<Record> kept_;
  std::map<std::string, std::vector<const Record*>> last_;
};

const Record* Todo::last(const PlannedCase& planned) const {
  const auto found =
      last_.find(text(planned.key, planned.ranks, planned.seed, std::string(name_of(request_.plan.device))));
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
  std::vector<std::string> flags;
  if (ranks > 1) {
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
    if (const auto lacking = lacking_on(*planned.family, planned.params, request_.plan.device)) {
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

void write_trace(Supervisor& supervisor, const fs::path& dir, Progress& progress) {
  const auto timelines = supervisor.take_timelines();
  if (timelines.empty()) return;
  try {
    trace::write_chrome_trace((dir / "trace.json").string(), timelines);
  } catch (const std::exception& error) {
    progress.note(fmt::format("assay: {}", error.what()));
  }
}

}  // namespace

fs::path cache_folder() {
  if (const char* named = std::getenv("ASSAY_CACHE"); named && *named) return named;
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base && *base) return fs::path(base) / "assay";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "assay";
  return fs::temp_directory_path() / "assay-cache";
}

DeviceKind device_of_run(const fs::path& dir) { return device_of(read_run(dir).run); }

ExitCode run_plan(const RunRequest& request, std::span<const Family> families) {
  if (std::getenv("OMP_PROC_BIND") || std::getenv("GOMP_CPU_AFFINITY"))
    cpu::bind_this_thread(cpu::rank_cpus());  // OpenMP has bound this thread to one CPU, and workers would inherit it
  Prepared prepared;
  read_plan(request, families, prepared);
  std::variant<Hosts, ExitCode> part = take_part(request, prepared.plan);
  if (const ExitCode* served = std::get_if<ExitCode>(&part)) return *served;
  prepared.hosts = std::get<Hosts>(std::move(part));
  settle_launcher(request, prepared);
  SupervisorOptions options;
  options.device = request.plan.device;
  options.cache_dir = cache_folder();
  options.trace = request.trace;
  options.share_gpu = request.share_gpu;
  options.slots = prepared.hosts.allocation.hosts;
  options.hosts = prepared.hosts.infos;
  options.agents = prepared.hosts.agents.get();
  options.heartbeat_limit_seconds = seconds_from_environment("ASSAY_HEARTBEAT_LIMIT", options.heartbeat_limit_seconds);
  options.launch_limit_seconds = seconds_from_environment("ASSAY_LAUNCH_LIMIT", options.launch_limit_seconds);

  Json run = prepared.before ? prepared.before->run : run_json(request, prepared);
  std::map<std::string, std::string> labels = request.labels;
  if (run.contains("labels") && run["labels"].is_object())
    for (const auto& label : run["labels"].items())
      if (label.value().is_string()) labels.try_emplace(label.key(), label.value().get<std::string>());
  RunWriter writer =
      request.resume ? RunWriter::resume(*request.resume) : RunWriter::create(request.out.value_or(default_out()), run);

  std::vector<MeasuredPeak> peaks;
  if (prepared.before) {
    for (const std::string& problem : prepared.before->problems) fmt::print(stderr, "assay: {}\n", problem);
    for (const Record& record : prepared.before->final_records())
      if (auto peak = measured_peak(record)) peaks.push_back(std::move(*peak));
    run["resumed"].push_back(
        {{"started", utc_now()}, {"argv", request.command_line}, {"version", build_info().version}});
  }
  options.run_dir = writer.dir();
  options.keep_file = [&](const std::string& name, std::string_view text, bool anew) {
    writer.write_file(name, text, anew);
  };
  const Supervisor::Sink keep = [&](Record record) {
    if (auto peak = measured_peak(record)) peaks.push_back(std::move(*peak));
    writer.append(std::move(record));
  };

  ExitCode code = ExitCode::ok;
  bool interrupted = false;
  Todo todo(request, prepared, labels);
  std::set<int> sizes;
  double seconds = 0;
  std::size_t cases = 0;
  for (const PlannedCase& planned : prepared.plan.cases) sizes.insert(planned.ranks);
  bool writable = true;
  try {
    std::vector<std::vector<Job>> groups;
    for (const int ranks : sizes) {
      std::vector<Job> jobs = todo.jobs(ranks, keep);
      for (const Job& job : jobs) seconds += job.estimated_seconds, ++cases;
      split_by_workers(std::move(jobs), groups);
    }
    Progress progress(cases, seconds);
    Supervisor supervisor(options, prepared.several_ranks, peaks, progress, keep);
    for (std::vector<Job>& jobs : groups)
      if (!jobs.empty() && !supervisor.run(std::move(jobs))) {
        interrupted = true;
        break;
      }
    if (request.trace) write_trace(supervisor, writer.dir(), progress);
    if (!interrupted) run["finished"] = utc_now();
    writer.update_run(run);
  } catch (const Error& error) {
    // A full disk, mostly: what was written stays whole.
    fmt::print(stderr, "assay: {}\n", error.what());
    code = ExitCode::broken;
    interrupted = true;
    writable = false;
  }

  const RunData data = read_run(writer.dir());
  if (request.report && writable) request.report(fs::proximate(writer.dir()));
  code = worst(code, exit_code_of(data, prepared.plan.cases.size()));
  const std::string dir = (request.resume ? *request.resume : fs::proximate(writer.dir())).string();
  if (interrupted) fmt::print(stderr, "assay: not complete; continue with: assay run --resume {}\n", dir);
  return interrupted ? worst(code, ExitCode::no_data) : code;
}

}  // namespace assay
