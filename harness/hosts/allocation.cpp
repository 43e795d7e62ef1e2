// From flags and environment to hosts.
#include "harness/hosts/allocation.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/host.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/whole_number.h"
#include "harness/hosts/hostfile.h"
#include "harness/hosts/slurm.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

namespace assay {

namespace {

constexpr int max_processes = 65536;

void check_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  const int port =
      colon == address.npos ? 0 : whole_number<int>(std::string_view(address).substr(colon + 1)).value_or(0);
  if (colon == 0 || port < 1 || port > 65535)
    throw UsageError(fmt::format("ASSAY_SUPERVISOR={}: must be HOST:PORT", one_line(address)));
}

// Rank, size, local rank and local size, each from the first launcher that sets it; and the hosts, without names.
void read_ranks(const Environment& environment, Allocation& allocation) {
  const auto rank = number_of(environment, {"ASSAY_RANK", "JOB_COMPLETION_INDEX", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                            "PMI_RANK", "SLURM_PROCID"});
  const auto size = number_of(
      environment, {"ASSAY_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  if (!rank)
    throw UsageError(
        "ASSAY_SUPERVISOR is set, but not which of its hosts this is: set ASSAY_RANK (0 supervises) and ASSAY_SIZE");
  if (!size)
    throw UsageError(fmt::format("ASSAY_SUPERVISOR and {} are set, but not how many hosts there are: set ASSAY_SIZE",
                                 rank->variable));
  if (size->value < 1 || rank->value >= size->value)
    throw UsageError(fmt::format("{}={} does not go with {}={}: ranks count from 0", rank->variable, rank->value,
                                 size->variable, size->value));
  allocation.rank = rank->value;
  allocation.size = size->value;
  // With ASSAY_RANK, local ranks count only from ASSAY_LOCAL_RANK: those of a surrounding launcher mean other ranks.
  const bool own = rank->variable.starts_with("ASSAY_") || rank->variable.starts_with("JOB_");
  const auto local_rank =
      own ? number_of(environment, {"ASSAY_LOCAL_RANK"})
          : number_of(environment, {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"});
  auto local_size = own ? number_of(environment, {"ASSAY_LOCAL_SIZE"})
                        : number_of(environment, {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"});
  if (!own && !local_size)
    if (const auto tasks = environment("SLURM_STEP_TASKS_PER_NODE"))
      local_size =
          Numbered{"SLURM_STEP_TASKS_PER_NODE", parse_tasks_per_node(*tasks, "SLURM_STEP_TASKS_PER_NODE").front()};
  if (local_rank) allocation.local_rank = local_rank->value;
  if (local_size && local_size->value > 0) allocation.local_size = std::min(local_size->value, allocation.size);
  const int slots = allocation.local_size.value_or(1);
  for (int left = allocation.size; left > 0; left -= slots)
    allocation.hosts.push_back(
        {"", allocation.local_size ? std::optional(std::min(slots, left)) : std::nullopt, "", false});
  // Rank 0's host is the first.
  if (allocation.rank == 0) {
    allocation.hosts.front().name = this_host();
    allocation.hosts.front().here = true;
  }
}

Allocation from_environment(const std::string& address, const Environment& environment) {
  Allocation allocation;
  allocation.source = LaunchSource::environment;
  allocation.origin = fmt::format("ASSAY_SUPERVISOR={}", one_line(address));
  allocation.supervisor = address;
  check_address(address);
  read_ranks(environment, allocation);
  allocation.token = environment("ASSAY_TOKEN").value_or("");
  if (allocation.token.empty() && allocation.size > 1)
    throw UsageError("ASSAY_SUPERVISOR is set, but ASSAY_TOKEN is not; give every host the same secret word");
  if (allocation.rank > 0) allocation.part = Part::agent;
  return allocation;
}

Allocation of_mpirun(const Environment& environment) {
  Allocation allocation;
  allocation.source = LaunchSource::environment;
  allocation.origin = fmt::format("mpirun with {} ranks", environment("OMPI_COMM_WORLD_SIZE").value_or("?"));
  read_ranks(environment, allocation);
  allocation.part = Part::unmet;
  return allocation;
}

Allocation of_hostfile(const std::filesystem::path& path, const std::string& flag, const Environment& environment) {
  Allocation allocation;
  allocation.source = LaunchSource::hostfile;
  allocation.origin = fmt::format("{} {}", flag, one_line(path.string()));
  allocation.hosts = read_hostfile(path, flag);
  for (AllocatedHost& host : allocation.hosts) {
    host.here = is_this_host(host.name, environment);
    if (host.here && (host.name == "localhost" || host.name == "127.0.0.1")) host.name = this_host();
  }
  return allocation;
}

Allocation of_this_host() {
  Allocation allocation;
  allocation.origin = "this host";
  allocation.hosts = {{this_host(), std::nullopt, "", true}};
  return allocation;
}

// The supervisor's host goes first: mpirun puts its ranks there first too, whatever the list says.
Allocation here_first(Allocation allocation) {
  std::stable_partition(allocation.hosts.begin(), allocation.hosts.end(),
                        [](const AllocatedHost& host) { return host.here; });
  return allocation;
}

}  // namespace

std::optional<Numbered> number_of(const Environment& environment, std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    const auto text = environment(variable);
    if (!text) continue;
    const auto value = whole_number<int>(*text);
    if (!value || *value < 0 || *value > max_processes)
      throw UsageError(fmt::format("{}={}: not a number from 0 to {}", variable, one_line(*text), max_processes));
    return Numbered{variable, *value};
  }
  return std::nullopt;
}

std::optional<std::string> own_environment(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

bool is_this_host(std::string_view name, const Environment& environment) {
  if (name == "localhost" || name == "127.0.0.1") return true;
  if (environment("SLURMD_NODENAME") == std::string(name)) return true;
  char text[256] = {};
  if (gethostname(text, sizeof text - 1) != 0) return false;
  const std::string_view own = text;
  const auto head = [](std::string_view full) { return full.substr(0, full.find('.')); };
  // Two names with different domains are different hosts.
  if (name.find('.') != name.npos && own.find('.') != own.npos) return name == own;
  return head(name) == head(own);
}

Allocation find_allocation(const std::optional<std::filesystem::path>& hostfile, const Environment& environment) {
  const auto address = environment("ASSAY_SUPERVISOR");
  const auto mpi_size = number_of(environment, {"OMPI_COMM_WORLD_SIZE"});
  const bool mpirun = mpi_size && mpi_size->value > 1;
  if (hostfile) {
    if (address) throw UsageError("--hostfile and ASSAY_SUPERVISOR exclude each other: one says who takes part");
    if (mpirun)
      throw UsageError(
          "--hostfile: every rank of this mpirun would start a run of its own; give the hostfile to mpirun, or start "
          "assay run without mpirun");
    return here_first(of_hostfile(*hostfile, "--hostfile", environment));
  }
  if (address) return from_environment(*address, environment);
  if (mpirun) return of_mpirun(environment);
  if (auto slurm = slurm_allocation(environment)) {
    // A job of only this node needs nothing from Slurm.
    if (slurm->part == Part::supervisor && slurm->only_here()) return of_this_host();
    return here_first(std::move(*slurm));
  }
  for (const char* variable : {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"})
    if (const auto path = environment(variable); path && *path != "none" && !mpi_size)
      return here_first(of_hostfile(*path, variable, environment));
  return of_this_host();
}

Allocation only_hosts(Allocation allocation, std::string_view names) {
  if (allocation.source == LaunchSource::environment)
    throw UsageError(fmt::format("--hosts: {} says who takes part", allocation.origin));
  std::vector<std::string> known;
  for (const AllocatedHost& host : allocation.hosts) known.push_back(host.name);
  std::map<std::string, std::optional<int>> asked;
  for (const std::string& word : split_commas(names)) {
    const std::size_t colon = word.rfind(':');
    const bool whole = colon == word.npos || std::ranges::find(known, word) != known.end();
    const std::string name = whole ? word : word.substr(0, colon);
    std::optional<int> slots;
    if (!whole) {
      slots = whole_number<int>(std::string_view(word).substr(colon + 1));
      if (!slots || *slots < 1 || *slots > max_processes)
        throw UsageError(fmt::format("--hosts {}: slots are a number from 1 to {}", one_line(word), max_processes));
    }
    if (std::ranges::find(known, name) == known.end())
      throw UsageError(fmt::format("--hosts: {} is not among the {} hosts of {}{}", in_quotes(name), known.size(),
                                   allocation.origin, suggestion(name, known)));
    if (!asked.try_emplace(name, slots).second) throw UsageError(fmt::format("--hosts: {} twice", in_quotes(name)));
  }
  std::erase_if(allocation.hosts, [&](const AllocatedHost& host) { return !asked.contains(host.name); });
  for (AllocatedHost& host : allocation.hosts)
    if (const auto& slots = asked.at(host.name)) host.slots = slots;
  allocation.origin += " (--hosts)";
  return allocation;
}

std::vector<std::string> passed_hosts(const std::filesystem::path& dir, const std::string& flag) {
  std::error_code none;
  const std::filesystem::path file = dir / passed_file;
  if (!std::filesystem::exists(file, none))
    throw UsageError(
        fmt::format("{} {}: no finished acceptance there (it has no {}); assay accept --resume finishes one", flag,
                    one_line(dir.string()), passed_file));
  std::vector<std::string> names;
  for (const AllocatedHost& host : parse_hostfile(read_whole(file, std::size_t{16} << 20), one_line(file.string())))
    names.push_back(host.name);
  return names;
}

Allocation only_passed(Allocation allocation, const std::filesystem::path& dir, const Environment& environment) {
  const std::vector<std::string> passed = passed_hosts(dir, "--only-passed");
  if (passed.empty()) throw UsageError(fmt::format("--only-passed {}: no host passed", one_line(dir.string())));
  if (allocation.source == LaunchSource::environment)
    throw UsageError(fmt::format("--only-passed: {} says who takes part", allocation.origin));
  // A job of one node is only this host, too.
  if (allocation.source == LaunchSource::local && !environment("SLURM_JOB_ID"))
    return here_first(of_hostfile(dir / passed_file, "--only-passed", environment));
  std::erase_if(allocation.hosts, [&](const AllocatedHost& host) {
    return std::ranges::none_of(passed, [&](const std::string& name) {
      return name == host.name || (host.here && is_this_host(name, environment));
    });
  });
  if (allocation.hosts.empty())
    throw UsageError(fmt::format("--only-passed {}: none of the hosts of {} passed there", one_line(dir.string()),
                                 allocation.origin));
  allocation.origin += " (--only-passed)";
  return allocation;
}

}  // namespace assay
