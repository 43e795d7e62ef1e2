// Fake machines: folders of the kernel's files.
#include "tests/unit/machine/fake_machines.h"

namespace assay {
namespace {

const std::string zen_flags = "fpu sse4_2 avx f16c fma avx2 avx512f avx512bw avx512_bf16 sme smep";

std::string cpu_folder(int cpu) { return "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/"; }

void add_memory(FakeRoot& fake, int gibibytes) {
  const auto kilobytes = [](double gib) { return std::to_string(static_cast<long>(gib * 1024 * 1024)) + " kB"; };
  // The kernel keeps 1.5 % for itself; blocks of 1 GiB show what is installed.
  fake.file("proc/meminfo", "MemTotal:  " + kilobytes(gibibytes * 0.985) + "\nMemFree: 1 kB\nMemAvailable: " +
                                kilobytes(gibibytes * 0.9) + "\nSwapTotal: 0 kB\nSwapFree: 0 kB\nHugetlb: 0 kB");
  fake.file("sys/devices/system/memory/block_size_bytes", "40000000");
  for (int i = 0; i < gibibytes; ++i)
    fake.file("sys/devices/system/memory/memory" + std::to_string(i) + "/state", "online");
}

void add_dmi(FakeRoot& fake, const std::string& vendor, const std::string& product) {
  fake.file("sys/class/dmi/id/sys_vendor", vendor).file("sys/class/dmi/id/product_name", product);
}

}  // namespace

void add_cpus(FakeRoot& fake, int cpus, int threads, const std::string& brand, const std::string& flags) {
  std::string info, stat = "cpu  100 0 0 900 0 0 0 0 0 0\n";
  const int cores = cpus / threads;
  for (int cpu = 0; cpu < cpus; ++cpu) {
    info += "processor\t: " + std::to_string(cpu) +
            "\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: " + brand +
            "\nstepping\t: 1\nflags\t\t: " + flags + "\n\n";
    stat += "cpu" + std::to_string(cpu) + " 25 0 0 225 0 0 0 0 0 0\n";
    const int core = cpu % cores;
    std::string siblings = std::to_string(core);
    for (int thread = 1; thread < threads; ++thread) siblings += "," + std::to_string(core + thread * cores);
    fake.file(cpu_folder(cpu) + "topology/physical_package_id", "0")
        .file(cpu_folder(cpu) + "topology/thread_siblings_list", siblings)
        .file(cpu_folder(cpu) + "cache/index0/level", "1")
        .file(cpu_folder(cpu) + "cache/index0/type", "Data")
        .file(cpu_folder(cpu) + "cache/index0/size", "32K")
        .file(cpu_folder(cpu) + "cache/index0/shared_cpu_list", siblings)
        .file(cpu_folder(cpu) + "cache/index3/level", "3")
        .file(cpu_folder(cpu) + "cache/index3/type", "Unified")
        .file(cpu_folder(cpu) + "cache/index3/size", "32M")
        .file(cpu_folder(cpu) + "cache/index3/shared_cpu_list", "0-" + std::to_string(cpus - 1));
  }
  fake.file("proc/cpuinfo", info)
      .file("proc/stat", stat + "intr 1")
      .file("proc/loadavg", "0.05 0.10 0.10 1/95 100")
      .file("proc/self/status", "Name:\tassay\nCpus_allowed_list:\t0-" + std::to_string(cpus - 1))
      .file("proc/sys/kernel/hostname", "made-up")
      .file("sys/devices/system/cpu/online", "0-" + std::to_string(cpus - 1));
}

void add_gpu(FakeRoot& fake, const std::string& pci, const std::string& device, int width) {
  const auto folder = "sys/bus/pci/devices/" + pci + "/";
  fake.file(folder + "vendor", "0x10de")
      .file(folder + "device", "0x" + device)
      .file(folder + "class", "0x030200")
      .file(folder + "current_link_width", std::to_string(width))
      .file(folder + "max_link_width", "16")
      .file(folder + "current_link_speed", "2.5 GT/s PCIe")
      .file(folder + "max_link_speed", "32.0 GT/s PCIe")
      .file(folder + "numa_node", "-1");
}

void make_bare_metal(FakeRoot& fake) {
  add_cpus(fake, 4, 2, "AMD EPYC 9654 96-Core Processor", zen_flags);
  add_memory(fake, 64);
  add_dmi(fake, "Supermicro", "AS -4125GS-TNRT");
  for (int cpu = 0; cpu < 4; ++cpu)
    fake.file(cpu_folder(cpu) + "cpufreq/scaling_governor", cpu == 3 ? "schedutil" : "performance")
        .file(cpu_folder(cpu) + "cpufreq/scaling_driver", "amd-pstate-epp")
        .file(cpu_folder(cpu) + "cpufreq/cpuinfo_min_freq", "400000")
        .file(cpu_folder(cpu) + "cpufreq/cpuinfo_max_freq", "3707812");
  fake.file("sys/devices/system/cpu/cpufreq/boost", "1")
      .file("sys/devices/system/cpu/smt/active", "1")
      .file("sys/class/powercap/intel-rapl:0/name", "package-0")
      .file("sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "360000000")
      .file("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]")
      .file("proc/sys/kernel/numa_balancing", "1")
      .file("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet");
  for (int node = 0; node < 2; ++node) {
    const auto folder = "sys/devices/system/node/node" + std::to_string(node) + "/";
    fake.file(folder + "cpulist", node == 0 ? "0,2" : "1,3")
        .file(folder + "meminfo", "Node " + std::to_string(node) + " MemTotal:       33554432 kB");
  }
}

void make_aws_p5(FakeRoot& fake) {
  add_cpus(fake, 2, 1, "AMD EPYC 7R13 Processor", zen_flags + " hypervisor");
  add_memory(fake, 32);
  add_dmi(fake, "Amazon EC2", "p5.48xlarge");
  fake.file("sys/class/dmi/id/board_asset_tag", "i-0123456789abcdef0");
  add_gpu(fake, "0000:53:00.0", "2330", 16);
  add_gpu(fake, "0000:64:00.0", "2330", 8);
  for (const auto* pci : {"0000:53:00.0", "0000:64:00.0"}) {
    fake.link(std::string("sys/bus/pci/devices/") + pci + "/driver", "../../../../bus/pci/drivers/nvidia");
    fake.file(
        std::string("proc/driver/nvidia/gpus/") + pci + "/information",
        "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 1\nGPU UUID: \t GPU-01234567-89ab-cdef-0123-456789abcdef\n");
  }
  // An NVSwitch and a GPU's audio function are not GPUs.
  fake.file("sys/bus/pci/devices/0000:82:00.0/vendor", "0x10de")
      .file("sys/bus/pci/devices/0000:82:00.0/class", "0x068000")
      .file("proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.163.01  Release Build  (x)  Tue\nGCC "
            "version: gcc 11.4.0");
}

void make_gcp(FakeRoot& fake) {
  add_cpus(fake, 4, 2, "Intel(R) Xeon(R) CPU @ 2.20GHz", "avx2 fma hypervisor");
  add_memory(fake, 16);
  add_dmi(fake, "Google", "Google Compute Engine");
}

void make_azure(FakeRoot& fake) {
  add_cpus(fake, 2, 1, "AMD EPYC 9V33X", zen_flags + " hypervisor");
  add_memory(fake, 8);
  add_dmi(fake, "Microsoft Corporation", "Virtual Machine");
  fake.file("sys/class/dmi/id/chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77")
      .file("proc/stat",
            "cpu  500 0 0 250 0 0 0 250 0 0\ncpu0 250 0 0 125 0 0 0 125 0 0\ncpu1 250 0 0 125 0 0 0 125 0 0");
}

void make_container(FakeRoot& fake) {
  add_cpus(fake, 4, 1, "Intel(R) Xeon(R) Platinum 8480+", "avx2 avx512f avx512bw amx_tile");
  add_memory(fake, 16);
  fake.file("proc/self/cgroup", "0::/")
      .file("sys/fs/cgroup/cgroup.controllers", "cpu memory")
      .file("sys/fs/cgroup/cpu.max", "150000 100000")
      .file("sys/fs/cgroup/memory.max", "2147483648")
      .file("sys/fs/cgroup/memory.current", "1048576")
      .file("proc/self/status", "Cpus_allowed_list:\t0-1")
      .file("proc/self/limits",
            "Limit                     Soft Limit           Hard Limit           Units     \n"
            "Max open files            128                  1048576              files     \n"
            "Max address space         1073741824           unlimited            bytes     ")
      .file(".dockerenv", "")
      .file("proc/meminfo",
            "MemTotal: 16000000 kB\nMemAvailable: 1000000 kB\nSwapTotal: 4000000 kB\nSwapFree: 3000000 kB");
}

}  // namespace assay
