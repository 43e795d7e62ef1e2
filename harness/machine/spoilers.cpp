// The rules: each checks one thing and reports nothing if it is fine or unknown.
#include "harness/machine/spoilers.h"

#include "harness/core/error.h"
#include "harness/device/cpu/cpu_list.h"
#include "harness/machine/problem_kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>

namespace assay {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30;

std::string gib(std::uint64_t bytes) {
  return bytes < gibibyte ? fmt::format("{:.0f} MiB", static_cast<double>(bytes) / static_cast<double>(mebibyte))
                          : fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(gibibyte));
}

class Rules {
 public:
  Rules(const Machine& machine, const Circumstances& circumstances)
      : cpu_(machine.cpu), memory_(machine.memory), system_(machine.system), machine_(machine), now_(circumstances) {}

  std::vector<Finding> run() {
    build();
    clocks();
    cores();
    load();
    memory();
    limits();
    blas();
    gpus();
    std::ranges::stable_sort(found_, std::greater{}, &Finding::severity);
    return std::move(found_);
  }

 private:
  // The table has the severity. `device` is empty for the host.
  void add(std::string_view id, std::string seen, std::string effect, std::string fix, std::string device = {}) {
    const ProblemKind* const kind = find_kind(id);
    ASSAY_CHECK(kind, "no kind of problem {}", id);
    found_.push_back(
        {kind->id, kind->severity, std::move(seen), std::move(effect), std::move(fix), std::move(device), kind->area});
  }

  void build() {
    if (now_.build_type != "Release" && now_.build_type != "RelWithDebInfo")
      add("debug-build",
          fmt::format("this assay was built as {}", now_.build_type.empty() ? "(no type)" : now_.build_type),
          "the loops it times are not optimised", "cmake --preset release && ninja -C build/release");
  }

  void clocks() {
    int slow = 0;
    std::string names;
    for (const auto& [governor, cpus] : cpu_.governors)
      if (governor != "performance") {
        slow += cpus;
        names += (names.empty() ? "" : ", ") + governor;
      }
    if (slow > 0)
      add("governor", fmt::format("governor {} on {} of {} CPUs", names, slow, cpu_.online.size()),
          "the clock follows the load, so short cases run slow", "sudo cpupower frequency-set -g performance");
    if (!cpu_.cpufreq)
      add("no-cpufreq", "the kernel shows no cpufreq",
          "the clock is estimated by a chain of adds, the governor is unknown",
          system_.hypervisor.empty()
              ? "load the driver of the CPU's frequency scaling (acpi_cpufreq, intel_pstate, amd_pstate)"
              : "nothing inside a virtual machine; a bare-metal instance shows it");
    if (!cpu_.turbo)
      add("turbo-unknown", "whether the CPU runs above its base clock cannot be seen",
          "figures may drift with temperature and with what neighbours do", "compare series of clock in the records");
    else if (*cpu_.turbo)
      add("turbo-on", "the CPU may run above its base clock",
          "figures depend on temperature and on how many cores are busy",
          cpu_.frequency_driver.starts_with("intel")
              ? "for steady figures: echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
              : "for steady figures: echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost");
    if (cpu_.throttled.value_or(0) > 0)
      add("throttled", fmt::format("{} thermal throttle events since boot", *cpu_.throttled),
          "the clock falls when the package is hot", "check cooling and power limits");
    static constexpr std::array<std::string_view, 5> slow_sources = {"hpet", "acpi_pm", "jiffies", "xen",
                                                                     "refined-jiffies"};
    if (std::ranges::find(slow_sources, system_.clocksource) != slow_sources.end())
      add("clocksource", fmt::format("clock source {}", system_.clocksource), "reading the time costs a system call",
          "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource");
  }

  void cores() {
    if (!cpu_.contradicting.empty())
      add("cpu-model",
          fmt::format("it calls itself model {}, which has no {}", cpu_.model.value_or(0), cpu_.contradicting),
          "what is known of that model, such as its peaks, does not hold for it",
          system_.hypervisor.empty() ? "nothing" : "let the virtual machine show the host's model (qemu: -cpu host)");
    if (cpu_.smt.value_or(false))
      add("smt", fmt::format("{} CPUs on {} cores", cpu_.online.size(), cpu_.cores),
          "two threads share a core; assay binds one thread per core, other programs may not",
          "echo off | sudo tee /sys/devices/system/cpu/smt/control");
    if (cpu_.quota_cpus && *cpu_.quota_cpus < static_cast<double>(cpu_.usable.size()))
      add("cpu-quota",
          fmt::format("the cgroup grants {:.2g} CPUs, {} are visible", *cpu_.quota_cpus, cpu_.usable.size()),
          "threads are paused for part of each period",
          fmt::format("lift the quota (docker --cpus, Kubernetes limits.cpu), or bind to {} CPUs with taskset",
                      std::max(1, static_cast<int>(*cpu_.quota_cpus))));
    if (cpu_.usable.size() < cpu_.online.size())
      add("cpu-affinity",
          fmt::format("this process may run on CPUs {} of {}", cpu_list_text(cpu_.usable), cpu_list_text(cpu_.online)),
          "only these are measured", "taskset -c 0-N assay ..., or the container's cpuset");
    if (!system_.hypervisor.empty())
      add("virtual-machine",
          system_.hypervisor == "unknown" ? std::string("a virtual machine")
                                          : fmt::format("a virtual machine ({})", system_.hypervisor),
          "neighbours share caches, memory bandwidth and power", "compare several runs, or use a bare-metal instance");
    shared_cache();
    // The window shows steal now; the mean since boot shows intermittent steal.
    const double steal = std::max(now_.activity.steal.value_or(0), system_.steal_since_boot.value_or(0));
    if (steal > 0.01)
      add("steal",
          fmt::format("{:.1f} % of CPU time was taken by the hypervisor ({})", steal * 100,
                      now_.activity.steal.value_or(0) > 0.01 ? "now" : "mean since boot"),
          "samples stretch when the CPU is taken away", "use an instance with dedicated CPUs");
  }

  // A hypervisor shows the processor's whole cache behind the few CPUs that it gives away. No processor has more for
  // each CPU of its own: AMD's EPYC 9184X has 96 MiB for two cores.
  void shared_cache() {
    constexpr std::uint64_t max_per_cpu = 48 * mebibyte;
    if (system_.hypervisor.empty() || cpu_.caches.empty()) return;
    const CacheLevel& last = cpu_.caches.back();
    if (last.bytes <= max_per_cpu * static_cast<std::uint64_t>(std::max(last.cpus_sharing, 1))) return;
    add("virtual-cache",
        fmt::format("an L{} of {} behind {} CPU{}: the hypervisor shows the processor's, which other machines share",
                    last.level, gib(last.bytes), last.cpus_sharing, last.cpus_sharing == 1 ? "" : "s"),
        "how much of it this machine gets changes with its neighbours, and so do figures of data larger than L2",
        "compare several runs, or use a bare-metal instance");
  }

  void load() {
    std::vector<std::string> names;
    double cpus = 0;
    for (const auto& process : now_.activity.busy) {
      cpus += process.cpus;
      if (names.size() < 5)
        names.push_back(fmt::format("{} (pid {}, {:.0f} %)", process.name, process.pid, process.cpus * 100));
    }
    if (now_.activity.busy.size() > names.size())
      names.push_back(fmt::format("{} more", now_.activity.busy.size() - names.size()));
    if (cpus >= 0.1)
      add("other-load", fmt::format("other processes take {:.1f} CPUs: {}", cpus, fmt::join(names, ", ")),
          "they take time, caches and bandwidth from what is measured", "stop them before measuring");
    else if (system_.load && !cpu_.online.empty() && *system_.load > 0.3 * static_cast<double>(cpu_.online.size()))
      add("recent-load",
          fmt::format("load average {:.2f} over the last minute on {} CPUs", *system_.load, cpu_.online.size()),
          "something was running a moment ago, and may run again", "wait until uptime shows a load near 0");
  }

  void memory() {
    const auto& mode = memory_.transparent_huge_pages;
    if (mode == "never")
      add("huge-pages", "transparent huge pages: never", "large buffers need more page-table walks",
          "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
    if (memory_.limit && memory_.total)
      add("memory-limit", fmt::format("the cgroup allows {} of {}", gib(*memory_.limit), gib(*memory_.total)),
          "larger cases are refused or killed", "raise the limit (docker --memory, Kubernetes limits.memory)");
    if (memory_.address_space_limit)
      add("address-space", fmt::format("ulimit -v allows {}", gib(*memory_.address_space_limit)),
          "large cases fail to allocate", "ulimit -v unlimited");
    if (memory_.available && memory_.total && *memory_.available * 2 < *memory_.total)
      add("memory-in-use", fmt::format("{} of {} are free", gib(*memory_.available), gib(*memory_.total)),
          "large cases are refused; little memory is left for the page cache", "stop the programs that use it");
    if (memory_.swap_used.value_or(0) > 0)
      add("swap", fmt::format("{} of swap in use", gib(*memory_.swap_used)),
          "reading a page back from swap stalls a sample", "sudo swapoff -a");
    if (memory_.numa_balancing.value_or(false) && machine_.numa.size() > 1)
      add("numa-balancing", fmt::format("automatic NUMA balancing over {} nodes", machine_.numa.size()),
          "the kernel unmaps and moves pages while they are measured", "sudo sysctl kernel.numa_balancing=0");
    const auto ranks = std::min<std::uint64_t>(cpu_.usable.size(), 16);
    if (memory_.shm_bytes && *memory_.shm_bytes < ranks * 64 * mebibyte)
      add("shm",
          fmt::format("/dev/shm has {}, {} ranks may need {}", gib(*memory_.shm_bytes), ranks,
                      gib(ranks * 64 * mebibyte)),
          "MPI and NCCL pass messages through it; they crash or take a slower path",
          fmt::format("sudo mount -o remount,size={}M /dev/shm (docker --shm-size={}m)", ranks * 64, ranks * 64));
  }

  void limits() {
    const auto wanted = static_cast<std::int64_t>(256 + 32 * cpu_.usable.size());
    if (system_.open_files && *system_.open_files < wanted)
      add("open-files",
          fmt::format("ulimit -n is {}, {} ranks may need {}", *system_.open_files, cpu_.usable.size(), wanted),
          "ranks, loader workers and shards run out of descriptors",
          fmt::format("ulimit -n {}", std::max<std::int64_t>(wanted, 65536)));
  }

  void blas() {
    if (!now_.blas || now_.blas->core.empty()) return;
    struct Level {
      std::string_view flag;
      std::string_view core_type;
      std::vector<std::string_view> cores;
    };
    const Level levels[] = {{"avx512bw", "SkylakeX", {"SkylakeX", "Cooperlake", "SapphireRapids"}},
                            {"avx2", "Haswell", {"Haswell", "Zen", "Excavator"}}};
    for (const auto& level : levels) {
      if (!cpu_.has(std::string(level.flag))) continue;
      if (std::ranges::find(level.cores, now_.blas->core) == level.cores.end())
        add("blas",
            fmt::format("OpenBLAS {} takes this CPU ({}, {}) for {}", now_.blas->version, cpu_.name, level.flag,
                        now_.blas->core),
            "programs that use it reach half of the CPU's speed or less; assay's gemm chooses the core type itself",
            fmt::format("export OPENBLAS_CORETYPE={}", level.core_type));
      return;  // only the CPU's best level counts
    }
  }

  void gpus() {
    std::vector<std::string> narrow, slow, bare;
    for (const auto& gpu : machine_.gpus) {
      if (gpu.driver != "nvidia") bare.push_back(gpu.pci);
      if (gpu.link_width && gpu.max_link_width && *gpu.link_width < *gpu.max_link_width)
        narrow.push_back(fmt::format("{}: x{} of x{}", gpu.pci, *gpu.link_width, *gpu.max_link_width));
      if (gpu.slot_link_speed && gpu.max_link_speed && *gpu.slot_link_speed < *gpu.max_link_speed &&
          system_.hypervisor.empty())
        slow.push_back(fmt::format("{}: {} of {} GT/s", gpu.pci, *gpu.slot_link_speed, *gpu.max_link_speed));
    }
    if (!bare.empty())
      add("gpu-driver", fmt::format("no NVIDIA driver is bound to the GPU at {}", fmt::join(bare, ", ")),
          "--device auto refuses to run; the GPU cannot be measured",
          "install NVIDIA's driver (nvidia-open) and load it");
    if (!narrow.empty())
      add("gpu-link-width", fmt::format("PCI Express links run with fewer lanes: {}", fmt::join(narrow, "; ")),
          "copies to and from the GPU are slow", "reseat the card or its riser, or move it to a full slot");
    if (!slow.empty())
      add("gpu-slot", fmt::format("slots are slower than their GPUs: {}", fmt::join(slow, "; ")),
          "copies to and from the GPU are slow", "move the card to a faster slot; check the firmware's link settings");
    for (const auto& gpu : machine_.gpus) gpu_state(gpu);
  }

  // Judges what the driver's management library reports about one GPU.
  void gpu_state(const GpuPart& gpu) {
    const std::string which = gpu.pci.empty() ? gpu.uuid : gpu.pci;
    const auto note = [&](std::string_view id, std::string seen, std::string effect, std::string fix) {
      add(id, std::move(seen), std::move(effect), std::move(fix), which);
    };
    const std::string select = fmt::format("sudo nvidia-smi -i {}", which);
    if (gpu.mig.value_or(false))
      note("gpu-mig", "MIG is on",
           "only a slice of the GPU is measured; the hardware sheet's peaks are the whole GPU's", select + " -mig 0");
    if (gpu.mps.value_or(false))
      note("gpu-mps", "processes share it through MPS", "kernels of other processes run between the measured ones",
           "echo quit | nvidia-cuda-mps-control");
    if (gpu.ecc && !*gpu.ecc)
      note("gpu-ecc", "ECC is off",
           "memory errors go unnoticed; figures are not comparable with those of GPUs with ECC on",
           select + " -e 1, then reboot");
    std::vector<std::string> faults;
    const auto fault = [&](std::optional<std::uint64_t> count, std::string_view what) {
      if (count.value_or(0) > 0) faults.push_back(fmt::format("{} {}", *count, what));
    };
    fault(gpu.errors.ecc_uncorrected, "uncorrectable ECC errors");
    fault(gpu.errors.remap_pending, "memory rows to be remapped by a reset");
    fault(gpu.errors.remap_failures, "memory rows that could not be remapped");
    if (!faults.empty())
      note("gpu-memory-errors", fmt::format("{}", fmt::join(faults, ", ")),
           "its memory is failing: results may be wrong, cases end early",
           select + " --gpu-reset, or replace the card");
    if (gpu.persistence && !*gpu.persistence)
      note("gpu-persistence", "persistence mode is off",
           "its driver is loaded for the first program that uses it, which takes seconds and resets counters",
           select + " -pm 1");
    if (gpu.power_limit && gpu.default_power_limit && *gpu.power_limit < 0.99 * *gpu.default_power_limit)
      note("gpu-power-limit",
           fmt::format("limited to {:.0f} W of {:.0f} W", *gpu.power_limit, *gpu.default_power_limit),
           "clocks fall under load", fmt::format("{} -pl {:.0f}", select, *gpu.default_power_limit));
    constexpr auto lowered = static_cast<std::uint64_t>(ThrottleReason::applications_clocks);
    const bool other_clock = gpu.applications_clock && gpu.default_applications_clock &&
                             *gpu.applications_clock != *gpu.default_applications_clock;
    if (other_clock || (gpu.throttle_reasons.value_or(0) & lowered))
      note("gpu-clocks", "its clocks are locked or lowered", "figures reflect that clock, not the GPU",
           select + " -rgc, then -rac");
    constexpr auto slowed = static_cast<std::uint64_t>(ThrottleReason::hardware_slowdown) |
                            static_cast<std::uint64_t>(ThrottleReason::software_thermal) |
                            static_cast<std::uint64_t>(ThrottleReason::hardware_thermal) |
                            static_cast<std::uint64_t>(ThrottleReason::power_brake);
    if (const auto reasons = gpu.throttle_reasons.value_or(0) & slowed)
      note("gpu-throttled", fmt::format("currently slowed down: {}", throttle_text(reasons)),
           "figures are those of a hot or underpowered GPU", "check cooling and power supply");
    std::vector<std::string> names;
    for (const GpuClient& client : gpu.clients)
      if (client.pid != getpid())
        names.push_back(client.bytes ? fmt::format("pid {} ({})", client.pid, gib(*client.bytes))
                                     : fmt::format("pid {}", client.pid));
    if (!names.empty())
      note("gpu-other-load", fmt::format("other processes compute on it: {}", fmt::join(names, ", ")),
           "they take its time, memory and power", "stop them before measuring");
  }

  const CpuPart& cpu_;
  const MemoryPart& memory_;
  const SystemPart& system_;
  const Machine& machine_;
  const Circumstances& now_;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> find_spoilers(const Machine& machine, const Circumstances& circumstances) {
  return Rules(machine, circumstances).run();
}

}  // namespace assay
