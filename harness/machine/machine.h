// The inventory of a machine, read from the kernel's files below a root. Unknown values are absent or empty, never 0.
#pragma once

#include "harness/machine/host_parts.h"
#include "harness/machine/nvml.h"
#include "harness/machine/root.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// Identical caches, counted.
struct CacheLevel {
  int level = 0;
  std::string type;         // data, instruction, unified
  std::uint64_t bytes = 0;  // size of a single cache
  int count = 0;
  int cpus_sharing = 0;  // logical CPUs that share a cache
};

struct CpuPart {
  std::string name;           // "Intel Emerald Rapids", "Arm Neoverse V2" if known, else the brand string
  std::string contradicting;  // an instruction set that the model which it reports lacks; empty: none
  std::string brand;          // as the processor reports it
  std::string vendor;
  std::optional<std::int64_t> family, model, stepping;
  std::string microcode;
  std::vector<std::string> flags;  // every feature the kernel names
  std::vector<int> online;         // logical CPUs
  std::vector<int> usable;         // logical CPUs that this process may run on
  int sockets = 0;
  int cores = 0;
  int usable_cores = 0;              // with at least one usable CPU
  std::optional<double> quota_cpus;  // CPU time that the cgroup grants, in CPUs
  std::optional<bool> smt;           // two or more threads per core are online
  std::vector<CacheLevel> caches;
  bool cpufreq = false;
  std::map<std::string, int> governors;  // CPUs by governor
  std::string frequency_driver;
  std::optional<bool> turbo;  // may run above the base clock
  std::optional<double> min_hz, max_hz, base_hz;
  std::optional<std::int64_t> throttled;       // package thermal throttle events since boot
  std::map<std::string, double> power_limits;  // W by RAPL package ("package-0")

  // The flags that matter for matrix work (avx2, avx512_bf16, amx_int8, sve2, ...).
  std::vector<std::string> isa() const;
  bool has(const std::string& flag) const;
};

struct NumaPart {
  int number = 0;
  std::vector<int> cpus;
  std::optional<std::uint64_t> bytes;
};

struct MemoryPart {
  std::optional<std::uint64_t> installed;  // online memory blocks, including what the kernel reserves
  std::optional<std::uint64_t> total;      // MemTotal
  std::optional<std::uint64_t> available;
  std::optional<std::uint64_t> limit;  // the tightest limit of the enclosing cgroups, if it is below the total
  std::optional<std::uint64_t> address_space_limit;
  std::optional<std::uint64_t> swap_total, swap_used;
  std::string transparent_huge_pages;             // always, madvise, never; empty: unknown
  std::optional<std::uint64_t> huge_pages_bytes;  // reserved explicitly
  std::optional<bool> numa_balancing;
  std::optional<std::uint64_t> shm_bytes;  // size of /dev/shm
};

struct GpuPart {
  std::string pci;   // 0000:1b:00.0
  std::string id;    // vendor:device, "10de:2335"
  std::string name;  // from the driver; empty without one
  std::string uuid;
  std::string driver;  // nvidia, nouveau, vfio-pci; empty: none bound
  std::optional<std::int64_t> link_width, max_link_width;
  std::optional<double> link_speed, max_link_speed;  // GT/s; an idle GPU slows its link down
  std::optional<double> slot_link_speed;             // the maximum of the bridge above it
  std::optional<int> numa_node;

  // From the driver's management library; absent without it.
  bool managed = false;  // the library knows this GPU
  std::string vbios;     // version; empty: not reported
  std::optional<std::int64_t> nvlinks_active;
  bool lost = false;                  // the GPU has fallen off the bus, or needs a reset
  std::optional<double> temperature;  // degrees Celsius
  std::optional<bool> mig, ecc, mps;  // partitioned; memory errors corrected; shared by MPS
  std::vector<std::string> slices;    // UUIDs of its parts (MIG) that the library reports
  std::optional<bool> persistence;    // the driver stays loaded while no program uses it
  GpuErrorCounts errors;
  std::optional<double> power_limit, default_power_limit;                // W
  std::optional<double> applications_clock, default_applications_clock;  // Hz, of the SMs
  std::optional<double> max_clock;                                       // Hz, of the SMs
  std::optional<std::uint64_t> throttle_reasons;                         // now, bits of ThrottleReason
  std::vector<GpuClient> clients;                                        // processes that compute on it
};

// Whether NVIDIA sells the GPU of that PCI id ("10de:2335") for servers only, from Volta on.
bool is_data_centre_gpu(std::string_view id);
// GT/s of a PCI Express link as the kernel writes it, "16.0 GT/s PCIe"; absent for "Unknown".
std::optional<double> gigatransfers(const std::optional<std::string>& text);
// 0, 63 and 255 mean an unknown width, as virtual bridges report it.
std::optional<std::int64_t> lanes(std::optional<std::int64_t> width);
// PCI Express generation of a transfer rate in GT/s; absent for other rates.
std::optional<int> pcie_generation(std::optional<double> gigatransfers);

struct SystemPart {
  std::string hostname;
  std::string os;  // "Debian GNU/Linux 12 (bookworm)"
  std::string kernel;
  std::string architecture;
  std::string container;                   // docker, podman, kubernetes, lxc, ...; empty: none seen
  std::string hypervisor;                  // KVM, Hyper-V, ...; empty: none seen
  std::string provider;                    // aws, gcp, azure, ...; empty: unknown
  std::string instance_type;               // if the firmware reports it (AWS); empty: unknown
  std::map<std::string, std::string> dmi;  // sys_vendor, product_name, ...: no serial numbers
  std::string nvidia_driver;               // version; empty: none loaded
  std::string nvidia_cuda;                 // the newest CUDA that the driver supports
  std::string clocksource;
  std::optional<std::int64_t> open_files;  // soft limit; absent when unlimited or unknown
  std::optional<double> load;              // one-minute load average
  std::optional<double> steal_since_boot;  // fraction of CPU time
};

struct Machine {
  std::map<std::string, std::string> cuda_libraries;  // with a GPU: versions that would be loaded
  CpuPart cpu;
  std::vector<NumaPart> numa;
  MemoryPart memory;
  std::optional<MemoryChannels> channels;
  std::vector<NetworkPart> network;  // hardware_ports()
  std::vector<DiskPart> disks;
  std::vector<GpuPart> gpus;
  SystemPart system;
};

// If the files are those of this machine, system calls, the processor itself and the driver's management library add
// what files do not contain. Elsewhere a file nvml.json below the root replaces that library; UsageError if it is
// invalid.
Machine probe_machine(const Root& root = Root());

// How NICs reach the memory of GPUs: "nvidia_peermem", "dma-buf", "none"; empty without GPUs or their driver.
std::string gpudirect_rdma(const Root& root, const Machine& machine);
// Tells whether the driver's kernel modules are the open ones.
bool open_modules(const Root& root);

// Its parts, only for probe_machine; each in its own file.
CpuPart probe_cpu(const Root& root);
std::vector<GpuPart> probe_gpus(const Root& root);
// Adds what NVML reports; GPUs that no file lists (a container without /sys) are appended.
void add_nvml(const Nvml& nvml, std::vector<GpuPart>& gpus);
// From nvml.json below the root, if it is there.
void add_nvml_file(const Root& root, Machine& machine);
// Fills in what is still unknown about its PCI Express link.
void add_link(const NvmlDevice& device, GpuPart& gpu);
SystemPart probe_system(const Root& root, const CpuPart& cpu);
// The product in which an Arm core is sold on that system, "NVIDIA Grace", "AWS Graviton3"; empty when unknown.
std::string arm_product(const std::string& core, const SystemPart& system);

}  // namespace assay
