// Checks what was asked for, beside the acceptance to continue if there is one.
#include "harness/fitness/accept/request.h"

#include "harness/core/configs.h"
#include "harness/core/files.h"
#include "harness/core/nearest.h"
#include "harness/core/sha256.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "harness/hosts/topology.h"
#include "harness/machine/expectation.h"
#include "harness/plan/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

namespace assay::accept {

namespace fs = std::filesystem;

namespace {

std::string hash_of(const fitness::Floors& floors) {
  return sha256_hex(read_whole(floors.file, fitness::max_floors_bytes));
}

// "without n3, with n9"; empty if equal.
std::string difference(std::vector<std::string> before, std::vector<std::string> now) {
  std::ranges::sort(before);
  std::ranges::sort(now);
  std::vector<std::string> gone, fresh, parts;
  std::set_difference(before.begin(), before.end(), now.begin(), now.end(), std::back_inserter(gone));
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(fresh));
  if (!gone.empty()) parts.push_back(fmt::format("without {}", fmt::join(gone, ", ")));
  if (!fresh.empty()) parts.push_back(fmt::format("with {}", fmt::join(fresh, ", ")));
  return one_line(joined(parts));
}

// Leaf switches of the request's hosts, by a file or by Slurm.
void find_leaves(Request& request, const std::string& file) {
  State& state = request.state;
  if (file.empty() && request.allocation.source != LaunchSource::slurm) return;
  const Leaves all = file.empty() ? slurm_topology(state.no_leaves) : read_topology(file, "--topology");
  for (const std::string& host : state.hosts)
    if (const auto leaf = all.find(host); leaf != all.end()) state.leaves.insert(*leaf);
  if (!all.empty() && state.leaves.empty()) {
    std::vector<std::string> known;
    for (const auto& [host, leaf] : all) known.push_back(host);
    if (!file.empty())
      throw UsageError(fmt::format("--topology {}: lists {} hosts, but not {}{}", one_line(file), known.size(),
                                   one_line(joined(state.hosts), 200), suggestion(state.hosts.front(), known)));
    state.no_leaves = "it lists none of these hosts";
  }
}

// Equal requests go on; anything else would mix two acceptances.
void continue_with(Request& request, const State& before, const std::string& dir) {
  State& state = request.state;
  std::vector<std::string> parts;
  if (before.level_hash != state.level_hash)
    parts.push_back(fmt::format("level {} is not the one that it began with ({}), or its plans have changed",
                                request.level.name, fs::path(before.level).stem().string()));
  if (before.floors_hash != state.floors_hash)
    parts.push_back(before.floors.empty()  ? "it began without floors"
                    : state.floors.empty() ? "it began with floors " + before.floors
                                           : fmt::format("floors {} are not those that it began with", state.floors));
  if (before.expect_hash != state.expect_hash)
    parts.push_back(before.expect.empty()  ? "it began without --expect"
                    : state.expect.empty() ? "it began with --expect " + before.expect
                                           : fmt::format("{} is not what it began with", state.expect));
  if (!state.leaves.empty() && before.leaves != state.leaves)
    parts.emplace_back("--topology gives the hosts other leaf switches than it began with");
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

Request make_request(const Options& options) {
  Request request;
  if (!options.out.empty() && !options.resume.empty())
    throw UsageError("accept: --out and --resume exclude each other: an acceptance goes on in its own folder");
  if (!options.again.empty() && options.resume.empty())
    throw UsageError("accept: --again names a host of a finished acceptance: --resume says which");
  if (!options.only_passed.empty() && !options.resume.empty())
    throw UsageError("accept: --only-passed chooses the hosts of a new acceptance; --resume goes on with its own");
  if (options.dry_run && !options.resume.empty())
    throw UsageError("accept: --dry-run shows what would run; it cannot be combined with --resume");
  std::optional<State> before;
  if (!options.resume.empty()) before = read_state(options.resume);
  const auto word = [&](const std::string& given, const std::string& kept) {
    return given.empty() && before ? kept : given;
  };
  const std::string level = word(options.level, before ? before->level : "");
  if (level.empty()) throw UsageError("accept: --level is required" + suggestion("", config_names("accept")));
  const std::string device = word(options.device, before ? before->device : "");
  const std::string hostfile = word(options.hostfile, before ? before->hostfile : "");
  request.allocation = find_allocation(hostfile.empty() ? std::nullopt : std::optional<fs::path>(hostfile));
  if (!options.only_passed.empty() && !before)
    request.allocation = only_passed(std::move(request.allocation), options.only_passed);
  else if (before && before->only_passed)
    request.allocation = only_hosts(std::move(request.allocation), joined(before->hosts, ","));
  if (request.allocation.source == LaunchSource::environment)
    throw UsageError(
        fmt::format("accept: {} starts a process on every host; accept starts its own: use --hostfile or "
                    "a Slurm job",
                    request.allocation.origin));
  const bool undecided = device.empty() || device == "auto";
  const bool others = !request.allocation.only_here();
  request.asks_hosts = others && !before && device != "cpu";
  request.device = others && undecided ? DeviceKind::cpu : choose_device(undecided ? "auto" : device);
  try {
    request.level = read_level(level, request.device);
  } catch (const UsageError& error) {
    if (!before || !options.level.empty()) throw;
    throw UsageError(fmt::format("--resume {}: it began with {}", options.resume, error.what()));
  }
  request.ranks_per_host = request.level.cpu_ranks;
  const std::string floors = word(options.floors, before ? before->floors : "");
  if (!floors.empty()) request.user = fitness::find_floors(floors);
  const bool bound = request.user && !request.user->floors.front().hardware.empty();
  request.audits_first = request.asks_hosts || (bound && !before);
  if (!request.level.fleet.empty()) request.fleet = fitness::load_floors(request.level.fleet);
  if (request.device == DeviceKind::cuda && before && before->ranks_per_host > 0) {
    request.ranks_per_host = before->ranks_per_host;
  } else if (request.device == DeviceKind::cuda && !request.asks_hosts) {
    // Without a GPU here nothing can be asked, and a dry run asks nothing.
    request.ranks_per_host =
        options.dry_run ? std::max(1, static_cast<int>(gpus_here().size())) : require_gpus(undecided ? "auto" : device);
  }
  request.state.id = state_form;
  request.state.level = request.level.file.string();
  request.state.level_hash = hash_of(request.level);
  if (request.user) {
    request.state.floors = fs::absolute(request.user->file).string();
    request.state.floors_hash = hash_of(*request.user);
  }
  if (const std::string expect = word(options.expect, before ? before->expect : ""); !expect.empty()) {
    const std::string text = expectation_text(expect);
    (void)read_expectation(text, expect);
    request.state.expect = fs::absolute(expect).string();
    request.state.expect_hash = sha256_hex(text);
  }
  request.state.hostfile = hostfile.empty() ? "" : fs::absolute(hostfile).string();
  request.state.only_passed = !options.only_passed.empty();
  if (hostfile.empty() && request.state.only_passed && request.allocation.source == LaunchSource::hostfile)
    request.state.hostfile = fs::absolute(fs::path(options.only_passed) / passed_file).string();
  request.state.device = request.asks_hosts && undecided ? "auto" : std::string(name_of(request.device));
  request.state.ranks_per_host = request.device == DeviceKind::cuda ? request.ranks_per_host : 0;
  request.state.started = utc_text(std::time(nullptr));
  request.state.with_serials = options.with_serials || (before && before->with_serials);
  for (const AllocatedHost& host : request.allocation.hosts) request.state.hosts.push_back(host.name);
  if (!before || !options.topology.empty()) find_leaves(request, options.topology);
  if (before) continue_with(request, *before, options.resume);
  return request;
}

void settle(Request& request, const fitness::AuditedFleet& audit) {
  (void)hosts_of_other_hardware(request, audit);
  if (!request.asks_hosts) return;
  std::map<std::pair<std::size_t, std::string>, std::size_t> kinds;  // hosts, by number and name of their GPUs
  for (const fitness::AuditedHost& host : audit.hosts)
    if (host.state == fitness::AuditState::ok)
      ++kinds[{host.gpus.size(), host.gpus.empty() ? "" : host.gpus.front().name}];
  const auto most = std::ranges::max_element(kinds, {}, [](const auto& one) { return one.second; });
  const std::size_t gpus = most == kinds.end() ? 0 : most->first.first;
  if (request.device == DeviceKind::cuda && gpus == 0)
    throw UsageError(fmt::format("accept --device cuda: {}", kinds.empty()
                                                                 ? "no host answered, so the number of GPUs is unknown"
                                                                 : "most hosts have no GPU, by their audits"));
  if (gpus == 0) {
    request.state.device = name_of(request.device);
    return;
  }
  request.device = choose_device("cuda");
  request.ranks_per_host = request.state.ranks_per_host = static_cast<int>(gpus);
  request.gpus = fmt::format("{} x {} on each host", gpus, one_line(most->first.second, 80));
  request.level = read_level(request.level.file.string(), request.device);
  request.fleet.reset();
  if (!request.level.fleet.empty()) request.fleet = fitness::load_floors(request.level.fleet);
  request.state.level_hash = hash_of(request.level);
  request.state.device = name_of(request.device);
}

std::vector<std::string> hosts_of_other_hardware(const Request& request, const fitness::AuditedFleet& audit) {
  std::vector<std::string> all, others;
  if (!request.user) return others;
  for (const fitness::AuditedHost& host : audit.hosts) {
    const std::vector<std::string> names = host.hardware_names();
    all.insert(all.end(), names.begin(), names.end());
    if (!names.empty() && !fitness::is_for(request.user->floors.front(), names)) others.push_back(host.host);
  }
  fitness::require_hardware(*request.user, std::move(all));
  return others;
}

std::string Request::why_not_run(std::string_view stage, std::size_t hosts) const {
  if (const auto why = level.not_run.find(std::string(stage)); why != level.not_run.end()) return why->second;
  if (std::ranges::find(run_stages, stage) == run_stages.end()) return {};
  const auto plans = level.plans.find(std::string(stage));
  if (plans == level.plans.end() || plans->second.empty())
    return fmt::format("level {} has no plan for it on {}", level.name, name_of(device));
  if ((stage == "pairs" || stage == "collectives") && hosts < 2) return "it needs two hosts";
  return {};
}

std::optional<int> Request::ranks_of(std::string_view stage, std::size_t hosts) const {
  if (!runs_alone(stage)) return static_cast<int>(hosts) * ranks_per_host;
  const bool several = device == DeviceKind::cuda || ranks_per_host > 1;
  return several ? std::optional(ranks_per_host) : std::nullopt;
}

}  // namespace assay::accept
