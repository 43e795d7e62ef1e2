// Chooses launcher and group.
#include "harness/hosts/worker_group.h"

#include "harness/core/error.h"
#include "harness/core/module.h"
#include "harness/hosts/hosts_group.h"
#include "harness/hosts/local_group.h"

namespace assay {

std::optional<std::string> missing_launcher(int ranks, DeviceKind device) {
  if (ranks == 1 || device != DeviceKind::cpu) return std::nullopt;
  if (Module::find("mpi").empty())
    return fmt::format(
        "{} ranks need libassay-mpi.so, which is not next to the binary: install libopenmpi-dev and "
        "build again with -DASSAY_MPI=ON",
        ranks);
  if (find_program("mpirun").empty())
    return fmt::format("{} ranks need mpirun, which is not in PATH: install openmpi-bin", ranks);
  return std::nullopt;
}

LauncherKind choose_launcher(int ranks, DeviceKind device) {
  if (const auto missing = missing_launcher(ranks, device)) throw UsageError(*missing);
  return ranks == 1 || device != DeviceKind::cpu ? LauncherKind::local : LauncherKind::mpirun;
}

std::unique_ptr<WorkerGroup> start_group(const LaunchRequest& request, Agents* agents) {
  LaunchRequest whole = request;
  if (!request.seats.empty()) whole.environment["ASSAY_CPUS_BY_RANK"] = cpu_sets(request.seats);
  if (agents) return std::make_unique<HostsGroup>(whole, *agents);
  return std::make_unique<LocalGroup>(whole);
}

}  // namespace assay
