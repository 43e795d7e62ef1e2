// The hosts that the launcher provides for a run, and the part that this process takes in it.
#pragma once

#include "harness/core/words.h"

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

enum class LaunchSource { local, hostfile, slurm, environment };
constexpr auto words(LaunchSource) {
  return std::to_array<std::string_view>({"local", "hostfile", "slurm", "environment"});
}

// More than any cluster has: a hostfile or a list of Slurm's that names more is refused.
inline constexpr std::size_t max_hosts = 65536;

struct AllocatedHost {
  std::string name;          // as the launcher knows it; empty until the host says hello (environment)
  std::optional<int> slots;  // ranks that it may take; absent: a default (harness/hosts/placement.h)
  std::string user;          // for its remote shell; empty: the shell's default
  bool here = false;         // it is this machine: no remote shell is needed
};

// What a process started as `assay run PLAN` does.
enum class Part {
  supervisor,  // runs the plan
  agent,       // serves the supervisor at Allocation::supervisor with this host (environment, ranks above 0)
  bystander,   // nothing: the first task of its srun supervises and starts its own processes
  unmet,       // one of several started by mpirun, which do not know the supervisor's address yet
};

struct Allocation {
  LaunchSource source = LaunchSource::local;
  std::string origin;                // for messages: "--hostfile hosts.txt", "Slurm job 17", "ASSAY_SUPERVISOR=n1:2900"
  std::vector<AllocatedHost> hosts;  // never empty, each name once; this host first, then the launcher's order
  Part part = Part::supervisor;

  // With `environment`, every host runs the same command, and this process is number `rank`. A rank of the launcher is
  // a host or, if the launcher sets local ranks, one of a host's slots.
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  std::optional<int> local_size;  // absent: not set by the launcher, each process is a host
  std::string supervisor;         // HOST:PORT at which rank 0 listens; empty while unmet
  std::string token;

  // Whether this host is the only one.
  bool only_here() const { return hosts.size() == 1 && hosts.front().here; }
  // Not so on a login node, which therefore needs no GPU.
  bool takes_part() const { return hosts.front().here; }
};

// An environment variable's value; absent and empty are the same.
using Environment = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> own_environment(const char* name);

// A rank or size from a launcher: the first of these variables that is set. Throws UsageError that names the variable
// if its value is not a number from 0 to 65,536.
struct Numbered {
  std::string variable;
  int value = 0;
};
std::optional<Numbered> number_of(const Environment& environment, std::initializer_list<const char*> variables);

// The allocation of this process, from the first that applies: `hostfile` (--hostfile) · ASSAY_SUPERVISOR · several
// ranks of Open MPI's mpirun · Slurm · Open MPI's variables for a default hostfile · only this host. Throws UsageError
// that names the file and line, or the variable, that is wrong.
Allocation find_allocation(const std::optional<std::filesystem::path>& hostfile,
                           const Environment& environment = own_environment);

// Only these of the allocation's hosts: "n1,n3", or "n1:8,n3:8" with the slots of each, as for Open MPI's --host.
// Throws UsageError if the allocation lacks one of them, naming the nearest, or does not say who takes part
// (environment).
Allocation only_hosts(Allocation allocation, std::string_view names);

// The hosts that passed in an acceptance, by name, in the folder of a finished one.
inline constexpr const char* passed_file = "passed.txt";
// Reads them; empty if none passed. Throws UsageError that names `flag` if the folder holds no finished acceptance.
std::vector<std::string> passed_hosts(const std::filesystem::path& dir, const std::string& flag);
// Only the allocation's hosts that passed in the acceptance of this folder; all that passed there where no hostfile and
// no job names hosts. Throws UsageError if there are none.
Allocation only_passed(Allocation allocation, const std::filesystem::path& dir,
                       const Environment& environment = own_environment);

// Whether a launcher's name for a host means this machine: localhost, its name (with or without domain), or its name in
// Slurm (SLURMD_NODENAME).
bool is_this_host(std::string_view name, const Environment& environment = own_environment);

}  // namespace assay
