// Who takes part in a run: the hosts that the launcher at hand gives it, and this process's part among its like.
#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

enum class LaunchSource { local, hostfile, slurm, environment };
std::string_view name_of(LaunchSource source);

struct AllocatedHost {
  std::string name;          // as the launcher knows it; empty where only the host itself will tell (environment)
  std::optional<int> slots;  // ranks that it may take; absent: as many as suit it (harness/hosts/placement.h)
  std::string user;          // for its remote shell; empty: the shell's own choice
  bool here = false;         // it is this machine: no remote shell is needed
};

// What a process that was started as `assay run PLAN` does.
enum class Part {
  supervisor,  // runs the plan
  agent,       // serves the supervisor at Allocation::supervisor with this host (environment, ranks above 0)
  bystander,   // nothing: the first task of its srun supervises, and starts what it needs itself
  unmet,       // one of several that mpirun started: rank 0 must first tell the others where it is
};

struct Allocation {
  LaunchSource source = LaunchSource::local;
  std::string origin;                // for messages: "--hostfile hosts.txt", "Slurm job 17", "ASSAY_SUPERVISOR=n1:2900"
  std::vector<AllocatedHost> hosts;  // never empty, each name once; this host first, then the launcher's order
  Part part = Part::supervisor;

  // Of `environment`: every host runs the same command, this is the one of `rank`. Ranks of the launcher are hosts
  // here, or, where it tells local ranks, their slots.
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  std::optional<int> local_size;  // absent: the launcher does not tell; each process is a host
  std::string supervisor;         // HOST:PORT at which rank 0 listens; empty while unmet
  std::string token;

  // Whether this host is the only one, so that nothing has to be started elsewhere.
  bool only_here() const { return hosts.size() == 1 && hosts.front().here; }
};

// An environment variable's value; absent and empty are the same.
using Environment = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> own_environment(const char* name);

// What launchers tell of ranks and sizes: the first of these variables that is set. Throws UsageError naming the
// variable where it is no number from 0 to 65,536.
struct Numbered {
  std::string variable;
  int value = 0;
};
std::optional<Numbered> number_of(const Environment& environment, std::initializer_list<const char*> variables);

// The allocation of this process, from the first of these that there is: `hostfile` (--hostfile) · ASSAY_SUPERVISOR ·
// several ranks of Open MPI's mpirun · Slurm · Open MPI's variables that name a default hostfile · this host alone.
// Throws UsageError naming file and line, or the variable, that cannot be understood.
Allocation find_allocation(const std::optional<std::filesystem::path>& hostfile,
                           const Environment& environment = own_environment);

// Whether a launcher's name for a host means this machine: localhost, its own name (with or without domain), or the
// name by which Slurm knows it (SLURMD_NODENAME).
bool is_this_host(std::string_view name, const Environment& environment = own_environment);

}  // namespace assay
