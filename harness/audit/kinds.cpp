// Every kind of problem: how bad it is, what it means, what to do. Problems that find_spoilers() reports bring their
// own meaning and fix; their rows say it in short.
#include "harness/audit/areas.h"

#include <algorithm>

namespace assay::audit {

namespace {

struct Row {
  const char* id;
  Severity severity;
  const char* meaning;
  const char* fix;
};

constexpr Severity fault = Severity::fault, warning = Severity::warning, info = Severity::info;
constexpr const char* reset =
    "stop its programs, nvidia-smi --gpu-reset -i GPU, or reboot; if it returns, replace the card";

constexpr Row rows[] = {
    // GPUs
    {"gpu-missing", fault, "a GPU is on the bus and not with the driver, or the reverse",
     "reboot; if it is still missing, reseat or replace the card"},
    {"gpu-count", fault, "boards with NVSwitches carry 4, 8 or 16 GPUs: some have left the bus",
     "power-cycle the machine; if it is still missing, replace the card"},
    {"gpu-lost", fault, "the GPU no longer answers on the bus", "power-cycle the machine; reseat or replace the card"},
    {"gpu-init-failed", fault, "the driver could not start the GPU", "reboot; if it returns, replace the card"},
    {"ecc-uncorrected", fault, "the GPU's memory has returned wrong bits: results may be wrong", reset},
    {"remap-pending", fault, "a bad memory row is replaced only by a reset of the GPU",
     "nvidia-smi --gpu-reset -i GPU, or reboot"},
    {"remap-failure", fault, "a bad memory row could not be replaced, as none is spare", "replace the card"},
    {"rows-remapped", warning, "many memory rows have been replaced; few are spare", "plan to replace the card"},
    {"ecc-corrected", warning, "the GPU's memory corrects many errors",
     "watch it; if the number grows, replace the card"},
    {"nvlink-errors", warning, "NVLink had errors that stop or slow transfers",
     "reseat the board or its cables; update the firmware"},
    {"pcie-replays", warning, "packets to the GPU are sent again: a bad contact or riser",
     "reseat the card or its riser"},
    {"gpu-hot", warning, "the GPU is close to the temperature at which it slows down",
     "check fans, filters and coolant"},
    {"no-management-library", warning, "the driver is loaded, but its management library does not answer",
     "install the driver's libraries (libnvidia-ml.so.1) of the same version"},
    {"gpu-no-driver", fault, "no NVIDIA driver is bound to a data-centre GPU: no job can use it",
     "install and load NVIDIA's driver (dmesg says why it did not load)"},
    // What find_spoilers() finds on GPUs
    {"gpu-driver", warning, "no NVIDIA driver is bound to the GPU", "install and load NVIDIA's driver"},
    {"gpu-link-width", warning, "the GPU's PCI Express link has fewer lanes than it could",
     "reseat the card or its riser, or move it to a full slot"},
    {"gpu-slot", warning, "the slot is slower than the GPU", "move the card; check the firmware's link settings"},
    {"gpu-mig", warning, "MIG is on: only a slice of the GPU is used", "nvidia-smi -mig 0"},
    {"gpu-mps", warning, "processes share the GPU through MPS", "echo quit | nvidia-cuda-mps-control"},
    {"gpu-ecc", warning, "ECC is off: memory errors go unnoticed", "nvidia-smi -e 1, then reboot"},
    {"gpu-persistence", info, "persistence mode is off", "nvidia-smi -pm 1"},
    {"gpu-power-limit", warning, "the power limit is below the default", "nvidia-smi -pl DEFAULT"},
    {"gpu-clocks", warning, "clocks are locked or lowered", "nvidia-smi -rgc, then -rac"},
    {"gpu-throttled", warning, "the GPU is slowed down now", "check cooling and power supply"},
    {"gpu-other-load", warning, "other processes compute on the GPU", "stop them"},
    // XID errors and other events of the kernel's log
    {"xid-fatal", fault, "the driver reported an error after which the GPU needs a reset or a repair", reset},
    {"xid-hardware", warning, "the driver reported an error of the GPU that it recovered from",
     "watch it; if it returns, run dcgmi diag -r 3"},
    {"xid-unknown", warning, "an XID that this table does not know", "look it up in NVIDIA's XID catalogue"},
    {"xid-application", info, "a program made an error on the GPU", "look at the program that ran then"},
    {"sxid-fatal", fault, "an NVSwitch reported a fatal error", "reboot; if it returns, replace the board"},
    {"sxid", warning, "an NVSwitch reported an error", "watch it; if it returns, replace the board"},
    {"aer-fatal", fault, "PCI Express reported a fatal error: the link was reset",
     "reseat the device; update its firmware"},
    {"aer-nonfatal", warning, "PCI Express lost a transaction", "reseat the device; update its firmware"},
    {"aer-corrected", warning, "PCI Express corrects many errors, which costs time",
     "reseat the device, its riser or cable"},
    {"hardware-error", fault, "the processor or the firmware reported an error that was not corrected",
     "read the log of the board's management controller; replace what it names"},
    {"machine-check", warning, "the processor reported corrected errors",
     "read the log of the board's management controller"},
    {"memory-uncorrected", fault, "the machine's memory had errors that could not be corrected", "replace the DIMM"},
    {"memory-corrected", warning, "the machine's memory corrects errors", "if the number grows, replace the DIMM"},
    {"thermal-events", warning, "a part became too hot and was slowed down", "check fans, filters and coolant"},
    {"link-events", warning, "a network link went down", "check cable, transceiver and switch port"},
    {"nic-health", fault, "the NIC's firmware has stopped", "reset the NIC or reboot; update its firmware"},
    {"nic-timeout", warning, "the NIC did not send for seconds",
     "update driver and firmware; check the switch's flow control"},
    {"nic-cable", warning, "a cable or transceiver is missing, hot or broken", "replace cable or transceiver"},
    {"nic-power", warning, "the slot gives the NIC less power than it needs, so it may run slowly or stop",
     "look for the slot's power limit in the firmware, or move the card"},
    {"oom-kill", warning, "the machine ran out of memory and a process was killed", "find what used the memory"},
    {"oom-cgroup", info, "a job ran out of the memory that its cgroup allows", "ask for more memory"},
    {"hung-task", warning, "a process was stuck in the kernel for minutes",
     "look at the device or file system in its stack"},
    {"cpu-lockup", warning, "a CPU was stuck in the kernel",
     "update kernel and firmware; look at the stack in the log"},
    {"kernel-oops", warning, "the kernel made an error; its state may be damaged", "reboot; update the kernel"},
    {"disk-errors", warning, "a disk failed to read or write", "check it with smartctl; replace it"},
    {"file-limit", warning, "no process could open a file, as the machine had too many open",
     "raise sysctl fs.file-max, or find what opens so many"},
    {"disk-lost", fault, "a disk no longer answers, or its array has dropped it",
     "reboot; if it returns, replace the disk"},
    {"filesystem-errors", warning, "a file system found damage in itself", "unmount and check it (fsck, xfs_repair)"},
    {"mount-stalled", warning, "a file server did not answer for a while", "check server and network"},
    {"past-errors", warning, "an error that would have been a fault, before the last boot or reset",
     "watch it; if it returns, repair"},
    {"kernel-log-cut", warning,
     "a part of the kernel's log was not read, so it may hold an error that is not named here",
     "rotate it (logrotate, journalctl --vacuum-size), and see what floods it"},
    {"kernel-log-unreadable", info, "no kernel log can be read, so past errors are not known",
     "run as root, or allow it: sysctl kernel.dmesg_restrict=0, group systemd-journal"},
    // From GPU to NIC
    {"acs-redirect", warning, "PCI Express bridges send peer-to-peer traffic through the root complex (ACS)",
     "turn ACS off in the firmware or by setpci on the bridges, unless virtual machines need it"},
    {"iommu-translates", warning, "the IOMMU translates each GPU's transfers, which slows peer-to-peer traffic",
     "boot with iommu=pt"},
    {"no-gpudirect-rdma", warning, "NICs cannot read GPU memory: collectives copy through host memory",
     "modprobe nvidia-peermem, or the open kernel modules with a kernel of 5.12 or later (dma-buf)"},
    {"gpu-far-from-nic", warning, "no NIC is on the GPU's NUMA node, while another GPU has one",
     "move the NIC, or see why it is missing"},
    {"topology-file-missing", warning, "NCCL is told to read a topology file that does not exist",
     "set NCCL_TOPO_FILE to the file"},
    {"nccl-plugin-missing", warning, "NCCL lacks the plugin for this network and uses slow sockets",
     "install the provider's NCCL plugin (aws-ofi-nccl for EFA)"},
    {"fabric-manager", fault, "the fabric manager does not run: CUDA cannot start on GPUs joined by NVSwitches",
     "systemctl enable --now nvidia-fabricmanager"},
    {"fabric-manager-version", fault, "the fabric manager is of another version than the driver, and refuses to run",
     "install both in the same version"},
    {"imex", warning, "IMEX is set up but does not run: no NVLink memory across hosts",
     "systemctl enable --now nvidia-imex"},
    // Network
    {"fabric-down", fault, "no port by which GPUs reach other hosts has a link: jobs over several hosts cannot run",
     "check the switch and the subnet manager (a port that stays in INIT lacks one), then cables and the NICs' driver"},
    {"rail-down", fault, "a port by which GPUs reach other hosts has no link since boot, while others of its kind have",
     "check cable, transceiver and switch port; if it is not to be used, name the others in NCCL_IB_HCA"},
    {"nic-missing", warning, "NCCL is told to use a port that is not here: it uses the others, if any",
     "see whether the NIC has left the bus (lspci), and its driver; correct NCCL_IB_HCA"},
    {"nic-link-lost", fault, "a NIC's link that was up is down", "check cable, transceiver and switch port"},
    {"nic-down", warning, "a NIC that GPUs may need has no link", "check cable, transceiver and switch port"},
    {"nic-slow", warning, "a NIC's link is slower than those of its kind",
     "replace cable or transceiver; if it is meant so, name the ports that GPUs use in NCCL_IB_HCA"},
    {"nic-pcie", warning, "a NIC's PCI Express link is slower than it could be",
     "reseat the card; check the firmware's link settings"},
    {"nic-firmware", info, "NICs of one kind have different firmware", "update them to the same firmware"},
    {"bond-degraded", warning, "a link of a bond is down", "check its cable and switch port"},
    {"link-flaps", warning, "a network link has gone down since boot", "check cable, transceiver and switch port"},
    {"nic-errors", warning, "a network port counts errors", "check cable, transceiver and switch port"},
    // Storage
    {"disk-full", fault, "a file system is full: jobs fail when they write", "remove files"},
    {"disk-nearly-full", warning, "a file system is nearly full", "remove files"},
    {"inodes-full", fault, "a file system has no inodes left: jobs fail when they create files", "remove small files"},
    {"read-only", fault, "a file system is read-only that should not be", "check the disk, then mount it again"},
    {"mount-stuck", fault, "a mount does not answer: every process that touches it hangs",
     "check server and network; umount -l"},
    {"mount-missing", warning, "a file system in /etc/fstab is not mounted", "mount it"},
    {"raid-degraded", warning, "a RAID runs without one of its disks", "replace the disk"},
    // Host
    {"memory-low", warning, "little memory is free", "find what uses it"},
    {"memory-uneven", warning, "NUMA nodes have different amounts of memory: a DIMM may have failed",
     "compare with dmidecode -t memory"},
    {"cpus-offline", warning, "CPUs are switched off", "echo 1 > /sys/devices/system/cpu/cpuN/online"},
    {"clock-wrong", fault, "the clock is wrong: certificates, logs and builds fail", "set it: chronyc makestep"},
    {"clock-unsynchronised", warning, "nothing keeps the clock right", "start chrony or systemd-timesyncd"},
    {"memlock", warning, "the limit of locked memory is too small for RDMA",
     "ulimit -l unlimited (LimitMEMLOCK=infinity)"},
    {"processes-blocked", warning, "many processes wait in the kernel for a device or a file server",
     "see what they wait for: /proc/PID/stack"},
    {"zombies", warning, "many ended processes are not collected by their parents", "restart their parents"},
    {"reboot-required", info, "an update waits for a reboot", "reboot"},
    // What find_spoilers() finds on hosts
    {"debug-build", warning, "this assay was built without optimisation", "build the preset release"},
    {"governor", warning, "the clock of CPUs follows the load", "cpupower frequency-set -g performance"},
    {"no-cpufreq", info, "the kernel shows no CPU frequency scaling", "load its driver"},
    {"turbo-unknown", info, "whether the CPU runs above its base clock cannot be seen", "nothing"},
    {"turbo-on", info, "the CPU may run above its base clock", "switch it off for steady figures"},
    {"throttled", warning, "CPUs were slowed down by heat since boot", "check cooling and power limits"},
    {"clocksource", warning, "reading the time costs a system call", "choose the clock source tsc"},
    {"smt", info, "two threads share a core", "switch SMT off where it disturbs"},
    {"cpu-quota", warning, "the cgroup grants less CPU time than is visible", "lift the quota"},
    {"cpu-affinity", info, "only some CPUs may be used", "widen the affinity or cpuset"},
    {"virtual-machine", info, "a virtual machine", "nothing"},
    {"virtual-cache", info, "a last-level cache that other machines share", "nothing"},
    {"steal", warning, "the hypervisor takes CPU time away", "use dedicated CPUs"},
    {"other-load", warning, "other processes use CPUs", "stop them"},
    {"recent-load", info, "something was running a moment ago", "wait"},
    {"huge-pages", warning, "transparent huge pages are off", "set them to madvise"},
    {"memory-limit", warning, "the cgroup allows less memory than the machine has", "raise the limit"},
    {"address-space", warning, "ulimit -v is set", "ulimit -v unlimited"},
    {"memory-in-use", info, "more than half of the memory is in use", "stop what uses it"},
    {"swap", warning, "swap is in use", "swapoff -a"},
    {"numa-balancing", warning, "the kernel moves memory between NUMA nodes", "sysctl kernel.numa_balancing=0"},
    {"shm", warning, "/dev/shm is small", "mount it larger"},
    {"open-files", warning, "ulimit -n is small", "raise it"},
    {"blas", warning, "OpenBLAS does not know this CPU", "set OPENBLAS_CORETYPE"},
    // Software
    {"driver-library-mismatch", fault,
     "the loaded driver and its libraries are of different versions: CUDA cannot start",
     "reboot, or reload the driver's modules"},
    {"torch-needs-newer-driver", warning,
     "PyTorch was built for a newer CUDA than the driver supports: it finds no GPU",
     "install a newer driver, or a PyTorch for the driver's CUDA"},
    {"torch-without-cuda", warning, "PyTorch was built without CUDA, on a machine with GPUs",
     "install a PyTorch built for CUDA"},
    {"torch-nccl", info, "PyTorch brings another NCCL than the system has: figures of collectives may differ",
     "compare figures with the same NCCL"},
};

}  // namespace

std::string_view name_of(Severity severity) {
  return severity == Severity::fault ? "fault" : severity == Severity::warning ? "warning" : "info";
}

std::optional<Severity> severity_of(std::string_view id) {
  const auto* const row = std::ranges::find(rows, id, &Row::id);
  return row != std::end(rows) ? std::optional(row->severity) : std::nullopt;
}

std::vector<ProblemKind> problem_kinds() {
  std::vector<ProblemKind> kinds;
  for (const Row& row : rows) kinds.push_back({row.id, row.severity, row.meaning, row.fix});
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const ProblemKind& a, const ProblemKind& b) { return a.severity < b.severity; });
  return kinds;
}

}  // namespace assay::audit
