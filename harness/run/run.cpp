// A run from its request to its exit code: plan, directory, supervisor, results.
#include "harness/run/run.h"

#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/units.h"
#include "harness/core/version.h"
#include "harness/device/cpu/team.h"
#include "harness/hosts/placement.h"
#include "harness/machine/environment.h"
#include "harness/machine/findings.h"
#include "harness/record/run_dir.h"
#include "harness/run/cases.h"
#include "harness/run/each_host.h"
#include "harness/run/results.h"

#include <algorithm>
#include <cstdlib>

namespace assay {

namespace fs = std::filesystem;

namespace {

fs::path default_out() {
  std::string name = utc_now();
  std::replace(name.begin(), name.end(), ':', '-');
  name.pop_back();  // the Z
  fs::path path = fs::path("runs") / name;
  for (int i = 2; fs::exists(path); ++i) path = fs::path("runs") / fmt::format("{}-{}", name, i);
  return path;
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

DeviceKind device_of(const Json& run) {
  const auto device = run.find("device");
  return device_kind_from(device != run.end() && device->is_string() ? device->get<std::string>() : "")
      .value_or(DeviceKind::cpu);
}

// A drill in which nothing can be broken would look like a check that does not work.
void refuse_idle_faults(const std::set<Fault>& faults, const Plan& plan) {
  for (const Fault fault : faults) {
    const auto able = [fault](const PlannedCase& one) { return can_inject(*one.family, fault, one.ranks); };
    if (plan.cases.empty() || std::any_of(plan.cases.begin(), plan.cases.end(), able)) continue;
    const auto with_ranks = [fault](const PlannedCase& one) { return can_inject(*one.family, fault, 2); };
    throw UsageError(fmt::format("--inject {}: no case of this plan can be given it{}", name_of(fault),
                                 std::any_of(plan.cases.begin(), plan.cases.end(), with_ranks)
                                     ? " on one rank: --ranks 2 runs them on two"
                                     : ""));
  }
}

// The plan of this run, new or resumed.
void read_plan(const RunRequest& request, std::span<const Family> families, Prepared& prepared) {
  if (request.resume) {
    prepared.before = read_run(*request.resume);
    const Json& run = prepared.before->run;
    const std::string source = (*request.resume / "run.json").string();
    if (const int schema = run.value("schema", 0); schema != record_schema)
      throw UsageError(
          fmt::format("--resume {}: a run of schema {}, and this build continues only runs of schema {}; "
                      "reports read it: start a new run for what is missing",
                      request.resume->string(), schema, record_schema));
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
  refuse_idle_faults(request.faults, prepared.plan);
}

Json run_json(const RunRequest& request, const Prepared& prepared) {
  Json json = {{"schema", record_schema},
               {"id", random_token()},
               {"started", utc_now()},
               {"finished", nullptr},
               {"argv", request.command_line}};
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

void write_trace(const std::vector<trace::RankTimeline>& timelines, const fs::path& dir, Progress& progress) {
  if (timelines.empty()) return;
  try {
    trace::write_chrome_trace((dir / "trace.json").string(), timelines);
  } catch (const std::exception& error) {
    progress.note(fmt::format("assay: {}", error.what()));
  }
}

bool said_each_host(const Json& run) {
  const auto said = run.find("each_host");
  return said != run.end() && said->is_boolean() && said->get<bool>();
}

// Whether every host runs the plan by itself. A resumed run goes on as it began.
bool wants_each_host(const RunRequest& request, const Prepared& prepared) {
  const bool several = prepared.hosts.agents != nullptr;
  if (!prepared.before) return request.each_host && several;
  const bool before = said_each_host(prepared.before->run);
  if (before && !several)
    throw UsageError(fmt::format("--resume {}: it ran on each of several hosts; name them again (--hostfile)",
                                 request.resume->string()));
  if (!before && several && request.each_host)
    throw UsageError(fmt::format("--each-host: {} was not run on each host", request.resume->string()));
  return before;
}

// What can be refused before the first case, of every host by itself.
void settle_each_host(const RunRequest& request, const Prepared& prepared) {
  if (request.trace) throw UsageError("--trace shows the ranks of one world; it does not go with --each-host");
  for (std::size_t i = 0; i < prepared.hosts.infos.size(); ++i) {
    Prepared one;
    one.plan = prepared.plan;
    one.hosts.allocation = prepared.hosts.allocation;
    one.hosts.allocation.hosts = {prepared.hosts.allocation.hosts[i]};
    one.hosts.infos = {prepared.hosts.infos[i]};
    settle_launcher(request, one);
  }
}

// The entry of a host in run.json.
Json& entry_of_host(Json& run, const std::string& name) {
  if (!run.contains("hosts") || !run["hosts"].is_array()) run["hosts"] = Json::array();
  for (Json& host : run["hosts"])
    if (host.is_object() && host.value("name", "") == name) return host;
  return run["hosts"].emplace_back(Json{{"name", name}});
}

bool run_on_each_host(const RunRequest& request, const Prepared& prepared,
                      const std::map<std::string, std::string>& labels, Json& run, RunWriter& writer) {
  EachHostOrder order;
  order.plan = &prepared.plan;
  order.device = request.plan.device;
  order.labels = labels;
  order.faults = request.faults;
  order.share_gpu = request.share_gpu;
  std::vector<AllocatedHost> singly = prepared.hosts.allocation.hosts;
  for (AllocatedHost& host : singly) host.slots = 1;
  const Placement seats = place_ranks(singly, prepared.hosts.infos, {static_cast<int>(singly.size()), DeviceKind::cpu});
  if (seats.one_machine)
    for (const RankSeat& seat : seats.seats) order.cpus.push_back(seat.cpus);
  order.heartbeat_limit_seconds = seconds_from_environment("ASSAY_HEARTBEAT_LIMIT", order.heartbeat_limit_seconds);
  order.launch_limit_seconds = seconds_from_environment("ASSAY_LAUNCH_LIMIT", order.launch_limit_seconds);
  if (prepared.before)
    for (Record& record : prepared.before->final_records())
      if (const auto hosts = record.identity().hosts; !hosts.empty()) {
        record.samples = {};
        record.telemetry.clear();
        record.log.clear();
        order.before[hosts.front()].push_back(std::move(record));
      }
  EachHostSinks sinks;
  sinks.record = [&](Record record) { writer.append(std::move(record)); };
  sinks.file = [&](const std::string& name, std::string_view text, bool anew) { writer.write_file(name, text, anew); };
  sinks.host = [&](Json host) {
    Json& entry = entry_of_host(run, host.at("name").get<std::string>());
    entry["environment"] = std::move(host["environment"]);
    entry["findings"] = std::move(host["findings"]);
    writer.update_run(run);
  };
  sinks.go_on = [&] { writer.refresh_lock(); };
  return EachHost(*prepared.hosts.agents, order, sinks).run();
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
  const bool each_host = wants_each_host(request, prepared);
  if (each_host)
    settle_each_host(request, prepared);
  else
    settle_launcher(request, prepared);
  Json run = prepared.before ? prepared.before->run : run_json(request, prepared);
  std::map<std::string, std::string> labels = request.labels;
  if (run.contains("labels") && run["labels"].is_object())
    for (const auto& label : run["labels"].items())
      if (label.value().is_string()) labels.try_emplace(label.key(), label.value().get<std::string>());
  if (each_host) {
    run["each_host"] = true;
    for (const AllocatedHost& host : prepared.hosts.allocation.hosts) entry_of_host(run, host.name);
  }
  RunWriter writer =
      request.resume ? RunWriter::resume(*request.resume) : RunWriter::create(request.out.value_or(default_out()), run);

  if (prepared.before) {
    for (const std::string& problem : prepared.before->problems) fmt::print(stderr, "assay: {}\n", problem);
    run["resumed"].push_back(
        {{"started", utc_now()}, {"argv", request.command_line}, {"version", build_info().version}});
  }
  CaseSinks sinks;
  sinks.run_dir = writer.dir();
  sinks.record = [&](Record record) { writer.append(std::move(record)); };
  sinks.file = [&](const std::string& name, std::string_view text, bool anew) { writer.write_file(name, text, anew); };
  sinks.go_on = [&] { writer.refresh_lock(); };
  sinks.progress = [](std::size_t cases, double seconds) { return std::make_unique<Progress>(cases, seconds); };
  sinks.timelines = [&](const std::vector<trace::RankTimeline>& timelines, Progress& progress) {
    write_trace(timelines, writer.dir(), progress);
  };

  ExitCode code = ExitCode::ok;
  bool interrupted = false;
  bool writable = true;
  try {
    interrupted = each_host ? !run_on_each_host(request, prepared, labels, run, writer)
                            : !run_cases(request, prepared, labels, sinks);
    // An end that was asked for when all was done already leaves nothing to go on with.
    interrupted =
        interrupted && (each_host || read_run(writer.dir()).final_records().size() < prepared.plan.cases.size());
    if (!interrupted) run["finished"] = utc_now();
    writer.update_run(run);
  } catch (const Error& error) {
    // A full disk, mostly: what was written stays whole.
    fmt::print(stderr, "assay: {}\n", error.what());
    code = ExitCode::broken;
    interrupted = true;
    writable = false;
  }

  const std::string dir = (request.resume ? *request.resume : fs::proximate(writer.dir())).string();
  std::error_code none;
  if (!writable && !fs::exists(writer.dir() / "run.json", none)) return code;  // it has gone: nothing is left to resume
  const RunData data = read_run(writer.dir());
  if (request.report && writable) request.report(fs::proximate(writer.dir()), !request.faults.empty());
  // Also of hosts of an earlier part of the run that do not take part any more.
  const std::size_t planned = prepared.plan.cases.size() * (each_host ? run["hosts"].size() : 1);
  code = worst(code, exit_code_of(data, planned));
  if (interrupted) fmt::print(stderr, "assay: not complete; continue with: assay run --resume {}\n", dir);
  return interrupted ? worst(code, ExitCode::no_data) : code;
}

}  // namespace assay
