// From flags, and the acceptance to continue, to what is to be done.
#include "cli/accept/request.h"

#include "cli/catalogue.h"
#include "cli/files.h"
#include "harness/core/configs.h"
#include "harness/core/files.h"
#include "harness/core/nearest.h"
#include "harness/core/sha256.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/utc.h"
#include "harness/fitness/cluster/cluster.h"
#include "harness/plan/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>

namespace assay::cli {

namespace fs = std::filesystem;

namespace {

constexpr double audit_seconds = 15;  // about

std::string floors_hash(const std::string& floors) {
  return floors.empty() ? "" : sha256_hex(read_whole(read_floors(floors).file, fitness::max_floors_bytes));
}

// "without n3, with n9"; empty if equal.
std::string difference(std::vector<std::string> before, std::vector<std::string> now) {
  std::sort(before.begin(), before.end());
  std::sort(now.begin(), now.end());
  std::vector<std::string> gone, fresh, parts;
  std::set_difference(before.begin(), before.end(), now.begin(), now.end(), std::back_inserter(gone));
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(fresh));
  if (!gone.empty()) parts.push_back(fmt::format("without {}", fmt::join(gone, ", ")));
  if (!fresh.empty()) parts.push_back(fmt::format("with {}", fmt::join(fresh, ", ")));
  return one_line(fmt::format("{}", fmt::join(parts, ", ")));
}

// Equal requests go on; anything else would mix two acceptances.
void continue_with(AcceptRequest& request, const AcceptState& before, const std::string& dir) {
  AcceptState& state = request.state;
  std::vector<std::string> parts;
  if (before.level_hash != state.level_hash)
    parts.push_back(fmt::format("level {} is not the one that it began with ({}), or its plans have changed",
                                request.level.name, fs::path(before.level).stem().string()));
  if (before.floors_hash != state.floors_hash)
    parts.push_back(before.floors.empty()  ? "it began without floors"
                    : state.floors.empty() ? "it began with floors " + before.floors
                                           : fmt::format("floors {} are not those that it began with", state.floors));
  if (before.device != state.device)
    parts.push_back(fmt::format("it began on {}, not {}", before.device, state.device));
  if (const std::string hosts = difference(before.hosts, state.hosts); !hosts.empty())
    parts.push_back("other hosts: " + hosts);
  if (before.audited && before.with_serials != state.with_serials)
    parts.emplace_back("it began without --with-serials");
  if (!parts.empty()) throw UsageError(fmt::format("--resume {}: {}", dir, fmt::join(parts, "; ")));
  state = before;
}

}  // namespace

AcceptRequest make_accept_request(const AcceptOptions& options) {
  AcceptRequest request;
  if (!options.out.empty() && !options.resume.empty())
    throw UsageError("accept: --out and --resume exclude each other: an acceptance goes on in its own folder");
  if (options.dry_run && !options.resume.empty())
    throw UsageError("accept: --dry-run shows what would run; it cannot be combined with --resume");
  std::optional<AcceptState> before;
  if (!options.resume.empty()) before = read_state(options.resume);
  const auto word = [&](const std::string& given, const std::string& kept) {
    return given.empty() && before ? kept : given;
  };
  const std::string level = word(options.level, before ? before->level : "");
  if (level.empty()) throw UsageError("accept: --level is required" + suggestion("", config_names("accept")));
  const std::string device = word(options.device, before ? before->device : "");
  request.device = choose_device(device.empty() ? "auto" : device);
  request.level = read_level(level, request.device);
  const std::string floors = word(options.floors, before ? before->floors : "");
  if (!floors.empty()) request.user = read_floors(floors);
  if (!request.level.fleet.empty()) request.fleet = fitness::load_floors(request.level.fleet);
  const std::string hostfile = word(options.hostfile, before ? before->hostfile : "");
  request.allocation = find_allocation(hostfile.empty() ? std::nullopt : std::optional<fs::path>(hostfile));
  if (request.allocation.source == LaunchSource::environment)
    throw UsageError(
        fmt::format("accept: {} starts a process on every host; accept starts its own: use --hostfile or "
                    "a Slurm job",
                    request.allocation.origin));
  // Without a GPU here nothing can be asked, and a dry run asks nothing.
  if (request.device == DeviceKind::cuda)
    request.ranks_per_host = options.dry_run ? std::max(1, static_cast<int>(gpus_here().size()))
                                             : require_gpus(device.empty() ? "auto" : device);
  request.state.id = state_form;
  request.state.level = request.level.file.string();
  request.state.level_hash = hash_of(request.level);
  request.state.floors = floors.empty() ? "" : fs::absolute(request.user->file).string();
  request.state.floors_hash = floors_hash(floors);
  request.state.hostfile = hostfile.empty() ? "" : fs::absolute(hostfile).string();
  request.state.device = std::string(name_of(request.device));
  request.state.started = utc_text(std::time(nullptr));
  request.state.with_serials = options.with_serials || (before && before->with_serials);
  for (const AllocatedHost& host : request.allocation.hosts) request.state.hosts.push_back(host.name);
  if (before) continue_with(request, *before, options.resume);
  return request;
}

std::string hosts_text(std::size_t count) { return fmt::format("{} host{}", count, count == 1 ? "" : "s"); }

std::string AcceptRequest::why_not_run(std::string_view stage, std::size_t hosts) const {
  if (const auto why = level.not_run.find(std::string(stage)); why != level.not_run.end()) return why->second;
  const bool of_runs = std::find(std::begin(run_stages), std::end(run_stages), stage) != std::end(run_stages);
  if (!of_runs) return "Assay has no such stage yet";
  const auto plans = level.plans.find(std::string(stage));
  if (plans == level.plans.end() || plans->second.empty())
    return fmt::format("level {} has no plan for it on {}", level.name, name_of(device));
  if ((stage == "pairs" || stage == "collectives") && hosts < 2) return "it needs two hosts";
  return {};
}

std::string AcceptRequest::plans_text(std::string_view stage) const {
  std::vector<std::string> names;
  for (const std::string& plan : level.plans.at(std::string(stage))) names.push_back(fs::path(plan).stem().string());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string AcceptRequest::not_run_text(std::string_view check, const std::string& why) const {
  return fmt::format("not run{}: {}", level.required.contains(std::string(check)) ? ", so no host can pass" : "", why);
}

// World sizes of a stage; none: the plan's own.
std::vector<int> AcceptRequest::ranks_of(std::string_view stage, std::size_t hosts) const {
  if (runs_alone(stage)) return device == DeviceKind::cuda ? std::vector{ranks_per_host} : std::vector<int>{};
  return {static_cast<int>(hosts) * ranks_per_host};
}

std::vector<PlannedCase> AcceptRequest::planned(std::string_view stage) const {
  PlanRequest request;
  request.targets = level.plans.at(std::string(stage));
  request.ranks = ranks_of(stage, state.hosts.size());
  request.device = device;
  request.configs = configs_dir();
  PlanLimits limits = machine_limits();
  if (device != DeviceKind::cpu) limits.memory_bytes = 0;
  if (!runs_alone(stage)) limits.ranks_per_host = [this](int) { return ranks_per_host; };
  std::vector<PlannedCase> cases = expand_plan(request, catalogue(), limits).cases;
  std::erase_if(cases, [](const PlannedCase& one) { return !one.unfit.empty(); });
  return cases;
}

std::vector<fitness::UnmeasuredFloor> AcceptRequest::floors_without_case(
    const std::map<std::string_view, std::vector<PlannedCase>>& cases) const {
  fitness::UnmeasuredFloors asked;
  if (user) asked.expect(*user, false);
  if (fleet) asked.expect(*fleet, true);
  std::vector<fitness::UnmeasuredFloor> without = asked.left();
  std::erase_if(without, [&](const fitness::UnmeasuredFloor& one) {
    const fitness::Floor& floor = one.floor;
    if (!floor.device.empty() && floor.device != name_of(device)) return false;
    return std::any_of(cases.begin(), cases.end(), [&](const auto& stage) {
      const bool alone = runs_alone(stage.first);
      const auto nodes = alone ? 1 : static_cast<int>(state.hosts.size());
      if (floor.nodes.value_or(nodes) != nodes) return false;
      if (floor.relative && (!alone || state.hosts.size() < 3)) return false;
      return std::any_of(stage.second.begin(), stage.second.end(), [&](const PlannedCase& planned) {
        return floor.ranks.value_or(planned.ranks) == planned.ranks && fitness::key_matches(floor.key, planned.key);
      });
    });
  });
  return without;
}

std::string AcceptRequest::schedule() const {
  std::string text = fmt::format("accept level {} on {} of {}: {}\n", level.name, hosts_text(state.hosts.size()),
                                 allocation.origin, one_line(fmt::format("{}", fmt::join(state.hosts, ", ")), 400));
  std::map<std::string_view, std::vector<PlannedCase>> cases;
  for (const std::string_view stage : run_stages)
    if (why_not_run(stage, state.hosts.size()).empty()) cases[stage] = planned(stage);
  for (const std::string& line : fitness::unmeasured_lines(floors_without_case(cases))) text += line + "\n";
  text += fmt::format("  {:<12} about {}\n", "audit", format_seconds(audit_seconds));
  double all = audit_seconds;
  for (const std::string_view stage : run_stages) {
    const std::string why = why_not_run(stage, state.hosts.size());
    double seconds = 0;
    for (const PlannedCase& one : cases[stage]) seconds += one.estimated_seconds;
    all += seconds;
    text += fmt::format("  {:<12} {}\n", stage,
                        why.empty() ? fmt::format("about {} at most: {}", format_seconds(seconds), plans_text(stage))
                                    : not_run_text(stage, why));
  }
  for (const std::string_view check : fitness::accept_checks)
    if (check != "audit" && std::find(std::begin(run_stages), std::end(run_stages), check) == std::end(run_stages))
      text += fmt::format("  {:<12} {}\n", check, not_run_text(check, why_not_run(check, state.hosts.size())));
  return text + fmt::format(
                    "about {} at most, if no host fails: what is slow is measured again, and stages of all hosts are "
                    "repeated without those that failed\n",
                    format_seconds(all));
}

}  // namespace assay::cli
