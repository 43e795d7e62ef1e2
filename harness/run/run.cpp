// A run from its request to its exit code: plan, hosts, directory, cases, results.
#include "harness/run/run.h"

#include "harness/core/build_id.h"
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/plain_text.h"
#include "harness/core/secrets.h"
#include "harness/core/streams.h"
#include "harness/core/trust.h"
#include "harness/core/units.h"
#include "harness/core/version.h"
#include "harness/device/cpu/team.h"
#include "harness/device/settings.h"
#include "harness/hosts/placement.h"
#include "harness/json/members.h"
#include "harness/machine/environment.h"
#include "harness/machine/spoilers.h"
#include "harness/record/flags.h"
#include "harness/record/run_dir.h"
#include "harness/record/validation.h"
#include "harness/run/cases.h"
#include "harness/run/each_host.h"
#include "harness/run/execute.h"
#include "harness/run/results.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace assay {

namespace fs = std::filesystem;

namespace {

// The first difference between two plans, for a message.
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

// A fault that no case can have injected would look like a check that does not find it.
void refuse_idle_faults(const std::set<Fault>& faults, const Plan& plan) {
  for (const Fault fault : faults) {
    const auto able = [fault](const PlannedCase& one) { return can_inject(*one.family, fault, one.ranks); };
    if (plan.cases.empty() || std::any_of(plan.cases.begin(), plan.cases.end(), able)) continue;
    const auto with_ranks = [fault](const PlannedCase& one) { return can_inject(*one.family, fault, 2); };
    throw UsageError(fmt::format("--inject {}: no case of this plan supports it{}", name_of(fault),
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
    if (request.allocation.rank == 0)
      for (const std::string& remark : prepared.plan.remarks) say("assay: {}\n", remark);
  }
  // Masked it would be another case, which could not be continued.
  for (const PlannedCase& planned : prepared.plan.cases)
    if (holds_secret(planned.key))
      throw UsageError(fmt::format("{}: a parameter holds a secret, which every report would show", planned.key));
  refuse_idle_faults(request.faults, prepared.plan);
}

Json run_json(const RunRequest& request, const Prepared& prepared) {
  Json json = {{"schema", record_schema},
               {"id", random_token()},
               {"started", utc_now()},
               {"finished", nullptr},
               {"argv", request.command_line}};
  json["version"] = build_info().version;
  json["build_id"] = build_id();
  json["git"] = {{"commit", build_info().commit}, {"dirty", build_info().dirty}};
  json["device"] = name_of(request.plan.device);
  json["labels"] = Json::object();
  for (const auto& [name, value] : prepared.plan.labels) json["labels"][name] = value;
  for (const auto& [name, value] : request.labels) json["labels"][name] = value;
  json["plan"] = prepared.plan.expanded();
  const Root root = user_root();
  const Machine machine = probe_machine(root);
  json["environment"] = environment_json(machine);
  std::vector<Finding> findings = find_spoilers(machine, present_circumstances(root));
  if (prepared.hosts.agents) {
    json["hosts"] = hosts_json(prepared.hosts);
    std::ranges::move(find_differences(*prepared.hosts.agents), std::back_inserter(findings));
  }
  json["findings"] = spoilers_json(findings);
  return json;
}

bool ran_on_each_host(const Json& run) {
  const auto flag = run.find("each_host");
  return flag != run.end() && flag->is_boolean() && flag->get<bool>();
}

// Whether every host runs the plan separately. A resumed run continues as it began.
bool wants_each_host(const RunRequest& request, const Prepared& prepared) {
  const bool several = prepared.hosts.agents != nullptr;
  if (!prepared.before) return request.each_host && several;
  const bool before = ran_on_each_host(prepared.before->run);
  if (before && !several)
    throw UsageError(fmt::format("--resume {}: it ran on each of several hosts; name them again (--hostfile)",
                                 request.resume->string()));
  if (!before && several && request.each_host)
    throw UsageError(fmt::format("--each-host: {} was not run on each host", request.resume->string()));
  return before;
}

// settle_launcher() for every host.
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

// Writes to the run directory on this host.
class FolderSink final : public RunSink {
 public:
  FolderSink(RunWriter& writer, Json& run, const std::set<std::string>& validated)
      : writer_(writer), run_(run), validated_(validated) {}
  fs::path run_dir() const override { return writer_.dir(); }
  void record(Record record) override {
    label_unvalidated(record, validated_);
    writer_.append(std::move(record));
  }
  void file(const std::string& name, std::string_view text, bool replace) override {
    writer_.write_file(name, text, replace);
  }
  void machine(const std::string& host, const message::Machine& machine) override {
    Json& entry = entry_of_host(run_, host);
    entry["environment"] = machine.environment;
    entry["findings"] = machine.findings;
    writer_.update_run(run_);
  }
  void timelines(const std::vector<trace::RankTimeline>& timelines) override {
    if (timelines.empty()) return;
    try {
      trace::write_chrome_trace((writer_.dir() / "trace.json").string(), timelines);
    } catch (const std::exception& error) {
      say("assay: {}\n", reason_of(error));
    }
  }
  void keep_alive() override { writer_.refresh_lock(); }

 private:
  RunWriter& writer_;
  Json& run_;
  const std::set<std::string>& validated_;
};

using Labels = std::map<std::string, std::string>;

// The labels of the request, and of run.json.
Labels labels_of(const RunRequest& request, const Json& run) {
  Labels labels = request.labels;
  if (run.contains("labels") && run["labels"].is_object())
    for (const auto& label : run["labels"].items())
      if (label.value().is_string()) labels.try_emplace(label.key(), label.value().get<std::string>());
  return labels;
}

using LostHosts = std::map<std::string, std::string>;  // with why

bool run_on_each_host(const RunRequest& request, const Prepared& prepared, const Labels& labels, RunSink& sink,
                      LostHosts& lost) {
  EachHostOrder order;
  order.plan = &prepared.plan;
  order.device = request.plan.device;
  order.labels = labels;
  order.faults = request.faults;
  order.share_gpu = request.share_gpu;
  order.launch_limit_seconds = launch_limit();
  std::vector<AllocatedHost> single_slots = prepared.hosts.allocation.hosts;
  for (AllocatedHost& host : single_slots) host.slots = 1;
  const Placement seats =
      place_ranks(single_slots, prepared.hosts.infos, {static_cast<int>(single_slots.size()), DeviceKind::cpu});
  if (seats.one_machine)
    for (const RankSeat& seat : seats.seats) order.cpus.push_back(seat.cpus);
  if (prepared.before)
    for (Record& record : prepared.before->final_records())
      if (const auto hosts = record.identity().hosts; !hosts.empty()) {
        record.samples = {};
        record.telemetry.clear();
        record.log.clear();
        order.before[hosts.front()].push_back(std::move(record));
      }
  EachHost hosts(*prepared.hosts.agents, order, sink);
  const bool complete = hosts.run();
  lost = hosts.lost();
  return complete;
}

// For whoever started this run, even if it has no directory.
void write_ended(const RunRequest& request, const Ended& ended) {
  if (!request.ended.empty()) replace_file(request.ended, dump_document(json_of(ended)));
}

// The hosts that are lost when the run ends, in run.json.
void note_lost(const RunRequest& request, const Prepared& prepared, LostHosts lost, Json& run) {
  if (const Agents* agents = prepared.hosts.agents.get())
    for (std::size_t i = 0; i < agents->hosts().size(); ++i)
      if (const std::string& why = agents->lost(static_cast<int>(i)); !why.empty())
        lost[agents->allocation().hosts[i].name] = why;
  if (lost.empty()) return;
  Ended ended;
  for (const auto& [host, why] : lost) {
    ended.reason += (ended.reason.empty() ? "" : "; ") + why;
    ended.lost.push_back(host);
  }
  run["ended"] = json_of(ended);
  write_ended(request, ended);
}

struct Outcome {
  bool complete = false;
  bool writable = true;  // the run directory took everything
};

// Runs the cases and finishes run.json.
Outcome measure(const RunRequest& request, const Prepared& prepared, bool each_host, Json& run, RunWriter& writer) {
  Outcome outcome;
  try {
    FolderSink sink(writer, run, prepared.validated);
    const Labels labels = labels_of(request, run);
    LostHosts lost;
    if (each_host) {
      outcome.complete = run_on_each_host(request, prepared, labels, sink, lost);
    } else {
      Progress progress;
      // A signal after the last case does not make the run incomplete.
      outcome.complete = run_cases(request, prepared, labels, progress, sink) ||
                         read_run(writer.dir()).final_records().size() >= prepared.plan.cases.size();
    }
    if (outcome.complete) run["finished"] = utc_now();
    note_lost(request, prepared, std::move(lost), run);
    writer.update_run(run);
  } catch (const Error& error) {
    // Usually a full disk; what was written stays valid.
    say("assay: {}\n", error.what());
    outcome = {.complete = false, .writable = false};
  }
  return outcome;
}

// Reports the run directory; returns the exit code of all of it.
ExitCode conclude(const RunRequest& request, const Outcome& outcome, std::size_t planned, const fs::path& dir) {
  ExitCode code = outcome.writable ? ExitCode::ok : ExitCode::broken;
  std::error_code none;
  if (!outcome.writable && !fs::exists(dir / "run.json", none)) return code;  // it is gone: nothing to resume
  RunData data = read_run(fs::proximate(dir));
  code = worst(code, exit_code_of(data, planned));
  if (request.report && outcome.writable) request.report(std::move(data), !request.faults.empty());
  if (outcome.complete) return code;
  say("assay: not complete; continue with: assay run --resume {}\n",
      (request.resume ? *request.resume : fs::proximate(dir)).string());
  return worst(code, ExitCode::no_data);
}

}  // namespace

fs::path default_out(const std::string& prefix) {
  std::string name = prefix + utc_now();
  std::replace(name.begin(), name.end(), ':', '-');
  name.pop_back();  // the Z
  fs::path path = fs::path("runs") / name;
  for (int i = 2; fs::exists(path); ++i) path = fs::path("runs") / fmt::format("{}-{}", name, i);
  return path;
}

fs::path cache_folder() {
  if (const char* named = std::getenv("ASSAY_CACHE"); named && *named) return named;
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base && *base) return fs::path(base) / "assay";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "assay";
  return as_root() ? fs::path("/var/cache/assay") : fs::temp_directory_path() / "assay-cache";
}

std::vector<std::string> flags_of(const Root& root) {
  if (root.real()) return {};
  return {std::string(flag::described_machine)};
}

DeviceKind device_of_run(const fs::path& dir) { return device_of(read_run(dir).run); }

ExitCode run_plan(const RunRequest& asked, std::span<const Family> families) {
  RunRequest request = asked;
  refuse_other_precision(request.plan.device);
  std::ranges::move(flags_of(user_root()), std::back_inserter(request.flags));
  if (std::getenv("OMP_PROC_BIND") || std::getenv("GOMP_CPU_AFFINITY"))
    cpu::bind_this_thread(cpu::rank_cpus());  // OpenMP has bound this thread to one CPU, which workers would inherit
  Prepared prepared;
  read_plan(request, families, prepared);
  try {
    std::variant<Hosts, ExitCode> part = take_part(request, prepared.plan);
    if (const ExitCode* served = std::get_if<ExitCode>(&part)) return *served;
    prepared.hosts = std::get<Hosts>(std::move(part));
  } catch (const HostsLost& error) {
    write_ended(request, {error.what(), error.hosts()});
    throw;
  }
  const bool each_host = wants_each_host(request, prepared);
  if (each_host)
    settle_each_host(request, prepared);
  else
    settle_launcher(request, prepared);
  if (request.plan.device != DeviceKind::cpu) prepared.validated = validated_paths(request.plan.configs / "reference");

  Json run = prepared.before ? prepared.before->run : run_json(request, prepared);
  if (each_host) {
    run["each_host"] = true;
    for (const AllocatedHost& host : prepared.hosts.allocation.hosts) entry_of_host(run, host.name);
  }
  RunWriter writer =
      request.resume ? RunWriter::resume(*request.resume) : RunWriter::create(request.out.value_or(default_out()), run);
  if (prepared.before) {
    run.erase("ended");
    for (const std::string& problem : first_ten(prepared.before->problems, "assay")) say("{}\n", problem);
    run["resumed"].push_back(
        {{"started", utc_now()}, {"argv", request.command_line}, {"version", build_info().version}});
  }
  const Outcome outcome = measure(request, prepared, each_host, run, writer);
  // Hosts of earlier parts of the run count too.
  const std::size_t planned = prepared.plan.cases.size() * (each_host ? run["hosts"].size() : 1);
  return conclude(request, outcome, planned, writer.dir());
}

}  // namespace assay
