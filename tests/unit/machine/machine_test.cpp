// What is read from fake machines, and what stays unknown.
#include "harness/machine/description.h"
#include "harness/machine/environment.h"
#include "harness/machine/identities.h"
#include "harness/machine/libraries.h"
#include "tests/unit/machine/fake_machines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace assay {
namespace {

constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30;

Machine probed(void (*make)(FakeRoot&)) {
  FakeRoot fake;
  make(fake);
  return probe_machine(fake.root());
}

TEST(Machine, DataCentreGpusAreKnownByTheirIds) {
  for (const char* id : {"10de:1db4", "10de:1eb8", "10de:20b2", "10de:20f1", "10de:2235", "10de:2330", "10de:2342",
                         "10de:26b5", "10de:26b9", "10de:27b8", "10de:2901", "10de:2941", "10de:2bb5"})
    EXPECT_TRUE(is_data_centre_gpu(id)) << id;
  // RTX A6000, RTX 6000 Ada, GeForce RTX 4090 and 5090, RTX PRO 6000 of workstations, GV100, CMP 170HX; none; AMD.
  for (const char* id : {"10de:2230", "10de:26b1", "10de:2684", "10de:2b85", "10de:2bb1", "10de:1dba", "10de:20c2",
                         "10de:", "10de:xyz", "", "1002:74a1"})
    EXPECT_FALSE(is_data_centre_gpu(id)) << id;
}

TEST(Machine, BareMetal) {
  const auto machine = probed(make_bare_metal);
  const auto& cpu = machine.cpu;
  EXPECT_EQ(cpu.brand, "AMD EPYC 9654 96-Core Processor");
  EXPECT_EQ(cpu.family, 25);
  EXPECT_EQ(cpu.sockets, 1);
  EXPECT_EQ(cpu.cores, 2);
  EXPECT_EQ(cpu.usable_cores, 2);
  EXPECT_EQ(cpu.online.size(), 4u);
  EXPECT_EQ(cpu.smt, true);
  EXPECT_EQ(cpu.quota_cpus, std::nullopt);
  EXPECT_THAT(cpu.isa(),
              testing::ElementsAre("sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512bw", "avx512_bf16"));
  ASSERT_EQ(cpu.caches.size(), 2u);
  EXPECT_EQ(cpu.caches[0].level, 1);
  EXPECT_EQ(cpu.caches[0].type, "data");
  EXPECT_EQ(cpu.caches[0].bytes, 32768u);
  EXPECT_EQ(cpu.caches[0].count, 2);
  EXPECT_EQ(cpu.caches[0].cpus_sharing, 2);
  EXPECT_EQ(cpu.caches[1].bytes, 32u << 20);
  EXPECT_EQ(cpu.caches[1].count, 1);
  EXPECT_EQ(cpu.governors, (std::map<std::string, int>{{"performance", 3}, {"schedutil", 1}}));
  EXPECT_EQ(cpu.frequency_driver, "amd-pstate-epp");
  EXPECT_EQ(cpu.max_hz, 3.707812e9);
  EXPECT_EQ(cpu.base_hz, std::nullopt);
  EXPECT_EQ(cpu.turbo, true);
  EXPECT_EQ(cpu.power_limits, (std::map<std::string, double>{{"package-0", 360.0}}));
  ASSERT_EQ(machine.numa.size(), 2u);
  EXPECT_THAT(machine.numa[1].cpus, testing::ElementsAre(1, 3));
  EXPECT_EQ(machine.numa[1].bytes, 32 * gibibyte);
  EXPECT_EQ(machine.memory.installed, 64 * gibibyte);
  EXPECT_LT(*machine.memory.total, 64 * gibibyte);
  EXPECT_EQ(machine.memory.limit, std::nullopt);
  EXPECT_EQ(machine.memory.transparent_huge_pages, "never");
  EXPECT_EQ(machine.memory.numa_balancing, true);
  EXPECT_EQ(machine.system.hypervisor, "");
  EXPECT_EQ(machine.system.container, "");
  EXPECT_EQ(machine.system.provider, "");
  EXPECT_EQ(machine.system.clocksource, "hpet");
  EXPECT_TRUE(machine.gpus.empty());
}

TEST(Machine, AwsReportsInstanceTypeAndGpus) {
  const auto machine = probed(make_aws_p5);
  EXPECT_EQ(machine.system.provider, "aws");
  EXPECT_EQ(machine.system.instance_type, "p5.48xlarge");
  EXPECT_EQ(machine.system.hypervisor, "KVM");
  EXPECT_EQ(machine.system.nvidia_driver, "550.163.01");
  ASSERT_EQ(machine.gpus.size(), 2u);
  const auto& gpu = machine.gpus[1];
  EXPECT_EQ(gpu.pci, "0000:64:00.0");
  EXPECT_EQ(gpu.id, "10de:2330");
  EXPECT_EQ(gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.uuid, "GPU-01234567-89ab-cdef-0123-456789abcdef");
  EXPECT_EQ(gpu.driver, "nvidia");
  EXPECT_EQ(gpu.link_width, 8);
  EXPECT_EQ(gpu.max_link_width, 16);
  EXPECT_EQ(pcie_generation(gpu.link_speed), 1);
  EXPECT_EQ(pcie_generation(gpu.max_link_speed), 5);
  EXPECT_EQ(gpu.numa_node, std::nullopt);
}

TEST(Machine, TheVersionOfAnOlderProprietaryDriverIsRead) {
  FakeRoot fake;
  fake.file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01  Wed Oct 27");
  EXPECT_EQ(probe_machine(fake.root()).system.nvidia_driver, "470.82.01");
}

TEST(Machine, GcpReportsNoInstanceType) {
  const auto machine = probed(make_gcp);
  EXPECT_EQ(machine.system.provider, "gcp");
  EXPECT_EQ(machine.system.instance_type, "");
  EXPECT_EQ(machine.system.hypervisor, "KVM");
  EXPECT_EQ(machine.cpu.smt, true);
  EXPECT_FALSE(machine.cpu.cpufreq);
  EXPECT_EQ(machine.cpu.turbo, std::nullopt);
}

TEST(Machine, AzureIsDistinguishedFromOtherHyperV) {
  FakeRoot fake;
  make_azure(fake);
  EXPECT_EQ(probe_machine(fake.root()).system.provider, "azure");
  EXPECT_EQ(probe_machine(fake.root()).system.hypervisor, "Hyper-V");
  EXPECT_EQ(probe_machine(fake.root()).system.steal_since_boot, 0.25);
  fake.remove("sys/class/dmi/id/chassis_asset_tag");
  EXPECT_EQ(probe_machine(fake.root()).system.provider, "");
  EXPECT_EQ(probe_machine(fake.root()).system.hypervisor, "Hyper-V");
}

TEST(Machine, BareMetalInstancesAreNotVirtualMachines) {
  FakeRoot fake;
  add_cpus(fake, 2, 1, "Intel(R) Xeon(R) Platinum 8488C", "avx2");
  fake.file("sys/class/dmi/id/sys_vendor", "Amazon EC2").file("sys/class/dmi/id/product_name", "m7i.metal-48xl");
  const auto machine = probe_machine(fake.root());
  EXPECT_EQ(machine.system.hypervisor, "");
  EXPECT_EQ(machine.system.instance_type, "m7i.metal-48xl");
}

TEST(Machine, Container) {
  const auto machine = probed(make_container);
  EXPECT_EQ(machine.system.container, "docker");
  EXPECT_EQ(machine.cpu.quota_cpus, 1.5);
  EXPECT_THAT(machine.cpu.usable, testing::ElementsAre(0, 1));
  EXPECT_EQ(machine.cpu.usable_cores, 2);
  EXPECT_EQ(machine.cpu.cores, 4);
  EXPECT_EQ(machine.memory.limit, 2 * gibibyte);
  EXPECT_EQ(machine.memory.address_space_limit, gibibyte);
  EXPECT_EQ(machine.memory.swap_used, 1000000u * 1024);
  EXPECT_EQ(machine.system.open_files, 128);
}

TEST(Machine, KindsOfContainers) {
  const auto kind = [](const std::string& file, const std::string& text) {
    FakeRoot fake;
    fake.file(file, text);
    return probe_machine(fake.root()).system.container;
  };
  EXPECT_EQ(kind("run/systemd/container", "systemd-nspawn"), "systemd-nspawn");
  EXPECT_EQ(kind("run/.containerenv", ""), "podman");
  EXPECT_EQ(kind("var/run/secrets/kubernetes.io/serviceaccount/token", "x"), "kubernetes");
  EXPECT_EQ(kind("proc/1/cgroup", "0::/kubepods.slice/pod1"), "kubernetes");
  EXPECT_EQ(kind("proc/1/cgroup", "0::/init.scope"), "");
  EXPECT_EQ(kind("proc/1/environ", std::string("PATH=/bin\0container=lxc\0A=b", 26)), "lxc");
}

TEST(Machine, EmptyTreeIsUnknownNotZero) {
  FakeRoot fake;
  const auto json = environment_json(probe_machine(fake.root()));
  EXPECT_TRUE(json["cpu"]["name"].is_null());
  EXPECT_TRUE(json["cpu"]["turbo"].is_null());
  EXPECT_TRUE(json["cpu"]["smt"].is_null());
  EXPECT_TRUE(json["memory"]["total_bytes"].is_null());
  EXPECT_TRUE(json["memory"]["shm_bytes"].is_null());
  EXPECT_TRUE(json["virtual_machine"].is_null());
  EXPECT_TRUE(json["container"].is_null());
  EXPECT_TRUE(json["cloud"]["provider"].is_null());
  EXPECT_TRUE(json["drivers"]["nvidia"].is_null());
  EXPECT_TRUE(json["load"].is_null());
  EXPECT_EQ(json["gpus"].size(), 0u);
}

TEST(Environment, OfThisMachineHasWhatARecordNeeds) {
  const auto json = environment_json(probe_machine());
  EXPECT_FALSE(json["assay"]["version"].get<std::string>().empty());
  EXPECT_TRUE(json["assay"]["dirty"].is_boolean());
  EXPECT_FALSE(json["assay"]["compiler"].get<std::string>().empty());
  EXPECT_TRUE(json["libraries"].contains("onednn"));
  EXPECT_TRUE(json["libraries"].contains("libc"));
  EXPECT_FALSE(json["hostnames"][0].get<std::string>().empty());
  EXPECT_GT(json["cpu"]["cores"].get<int>(), 0);
  EXPECT_GT(json["memory"]["total_bytes"].get<double>(), 0);
  EXPECT_EQ(json, Json::parse(json.dump())) << "survives being written and read";
}

TEST(Libraries, FindsInstalledVersionsByFileName) {
  FakeRoot fake;
  fake.file("usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblasp-r0.3.21.so", "")
      .file("usr/lib/x86_64-linux-gnu/libblis.so.4", "");
  const auto found = libraries(fake.root());
  EXPECT_EQ(found.at("openblas"), "0.3.21");
  EXPECT_EQ(found.at("blis"), "4");
  EXPECT_FALSE(libraries(FakeRoot().root()).contains("openblas"));
}

TEST(Description, LeavesOutWhatIsUnknown) {
  Machine machine;
  machine.system.kernel = "6.1";
  machine.cpu.sockets = 1;
  machine.cpu.cores = machine.cpu.usable_cores = 2;
  machine.cpu.online = {0, 1};
  const std::string text = machine_text(machine, {{"fmt", "9.1"}}, {});
  EXPECT_THAT(text, testing::StartsWith("this machine\n  CPU            unknown: 1 socket, 2 cores, 2 CPUs\n"));
  EXPECT_THAT(
      text, testing::HasSubstr("  memory         unknown, unknown available\n  GPU            none on the PCI bus\n"));
  EXPECT_THAT(text, testing::HasSubstr("  libraries      fmt 9.1\n"));
  for (const char* row : {"usable", "clock", "NUMA", "driver"})
    EXPECT_THAT(text, testing::Not(testing::HasSubstr(row)));
}

TEST(Description, NamesAGpuWithoutADriverByItsSheet) {
  Machine machine;
  machine.cpu.usable_cores = 3;
  machine.cpu.cores = 4;
  machine.gpus.resize(1);
  machine.gpus[0].pci = "0000:1b:00.0";
  machine.gpus[0].id = "10de:2330";
  HardwareSheet sheet;
  sheet.description = "the sheet's name";
  sheet.pci_ids = {"10de:2330"};
  const std::string text = machine_text(machine, Json::object(), {sheet});
  EXPECT_THAT(text, testing::HasSubstr("  GPU            0000:1b:00.0 the sheet's name, no driver\n"));
  EXPECT_THAT(text, testing::HasSubstr("  usable         3 cores\n"));
}

// A DIMM as SMBIOS describes it: its size, and its configured speed in MT/s.
std::string dimm_record(int megabytes, int speed) {
  std::string raw(92, '\x01');
  raw[0] = 17;
  const auto word = [&](std::size_t at, int value) {
    raw[at] = static_cast<char>(value & 0xff);
    raw[at + 1] = static_cast<char>(value >> 8);
  };
  word(0x0c, megabytes);
  word(0x20, speed);
  return raw;
}

// Two controllers of two channels; the last channel has no DIMM, the second has two.
void make_channels(FakeRoot& fake) {
  add_cpus(fake, 2, 1, "AMD EPYC 9654 96-Core Processor", "avx2");
  const std::string folder = "sys/devices/system/edac/mc/";
  int number = 0;
  for (const auto& [mc, location] : {std::pair{"mc0", "channel 0 slot 0"}, std::pair{"mc0", "channel 1 slot 0"},
                                     std::pair{"mc0", "channel 1 slot 1"}, std::pair{"mc1", "channel 0 slot 0"}}) {
    const std::string dimm = folder + mc + "/dimm" + std::to_string(number++) + "/";
    fake.file(dimm + "dimm_location", location).file(dimm + "size", "16384");
    fake.file(folder + mc + "/max_location", "channel 1 slot 1 ");
  }
  fake.file(folder + "mc1/dimm9/dimm_location", "channel 1 slot 0").file(folder + "mc1/dimm9/size", "0");
  fake.file("sys/firmware/dmi/entries/17-0/raw", dimm_record(16384, 4800))
      .file("sys/firmware/dmi/entries/17-1/raw", dimm_record(16384, 4400))
      .file("sys/firmware/dmi/entries/17-2/raw", dimm_record(0, 1600))
      .file("sys/firmware/dmi/entries/4-0/raw", dimm_record(16384, 800));
}

TEST(MemoryChannels, AreThoseOfEdacAtTheSlowestConfiguredRate) {
  const auto machine = probed(make_channels);
  ASSERT_TRUE(machine.channels);
  EXPECT_EQ(machine.channels->channels, 4);
  EXPECT_EQ(machine.channels->populated, 3);
  EXPECT_EQ(machine.channels->transfers, 4.4e9);
  const Json channels = environment_json(machine)["memory"]["channels"];
  EXPECT_EQ(channels, (Json{{"all", 4}, {"populated", 3}, {"transfers_per_second", 4.4e9}}));
}

TEST(MemoryChannels, AreUnknownBelowAHypervisorAndWithoutEdac) {
  const auto virtual_one = probed([](FakeRoot& fake) {
    make_channels(fake);
    add_cpus(fake, 2, 1, "AMD EPYC 9654 96-Core Processor", "avx2 hypervisor");
  });
  EXPECT_FALSE(virtual_one.channels) << "firmware below a hypervisor invents DIMMs";
  EXPECT_FALSE(probed(make_bare_metal).channels);
  EXPECT_EQ(environment_json(virtual_one)["memory"]["channels"], nullptr);
  const auto by_row = probed([](FakeRoot& fake) {
    make_channels(fake);
    fake.file("sys/devices/system/edac/mc/mc0/dimm0/dimm_location", "memory 0");
  });
  EXPECT_FALSE(by_row.channels) << "the driver does not tell channels apart";
  const auto unbounded = probed([](FakeRoot& fake) {
    make_channels(fake);
    fake.remove("sys/devices/system/edac/mc/mc1/max_location").file("sys/devices/system/edac/mc/power/control", "auto");
  });
  EXPECT_FALSE(unbounded.channels) << "how many channels the second controller has is unknown";
  const auto slow_one = probed([](FakeRoot& fake) {
    make_channels(fake);
    fake.file("sys/firmware/dmi/entries/17-1/raw", dimm_record(16384, 0));
  });
  EXPECT_EQ(slow_one.channels->transfers, std::nullopt) << "the DIMM of unknown rate may be the slowest";
  const auto unprivileged = probed([](FakeRoot& fake) {
    make_channels(fake);
    fake.remove("sys/firmware");
  });
  EXPECT_EQ(unprivileged.channels->transfers, std::nullopt);
}

TEST(Links, HaveTheRateOfTheirLanesAfterTheLineCode) {
  EXPECT_DOUBLE_EQ(pcie_rate(16, 32), 16 * 32e9 * 128 / 130 / 8);  // 63 GB/s
  EXPECT_DOUBLE_EQ(pcie_rate(4, 5), 2e9);
  EXPECT_DOUBLE_EQ(pcie_rate(16, 64), 16 * 64e9 * 242 / 256 / 8);
  const auto machine = probed([](FakeRoot& fake) {
    add_cpus(fake, 2, 1, "A CPU", "avx2");
    const auto link = [&](const std::string& folder) {
      fake.file(folder + "current_link_width", "4").file(folder + "current_link_speed", "16.0 GT/s PCIe");
    };
    fake.file("sys/class/nvme/nvme0/model", "DISK 1");
    link("sys/class/nvme/nvme0/device/");
    fake.file("sys/class/net/eth0/speed", "25000").file("sys/class/net/eth0/operstate", "up");
    link("sys/class/net/eth0/device/");
    fake.file("sys/class/net/docker0/speed", "10000").file("sys/class/net/docker0/operstate", "up");
  });
  ASSERT_EQ(machine.disks.size(), 1u);
  EXPECT_EQ(machine.disks[0].model, "DISK 1");
  EXPECT_DOUBLE_EQ(*machine.disks[0].pci_rate, pcie_rate(4, 16));
  ASSERT_EQ(machine.network.size(), 1u) << "a bridge of containers is no hardware";
  EXPECT_EQ(machine.network[0].name, "eth0");
  EXPECT_EQ(machine.network[0].rate, 25);
  EXPECT_DOUBLE_EQ(*machine.network[0].pci_rate, pcie_rate(4, 16));
}

TEST(Links, OfInfinibandHideThoseOfEthernet) {
  const auto machine = probed([](FakeRoot& fake) {
    add_cpus(fake, 2, 1, "A CPU", "avx2");
    const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
    fake.file(port + "rate", "400 Gb/sec (4X NDR)").file(port + "state", "4: ACTIVE");
    fake.file("sys/class/infiniband/mlx5_0/device/vendor", "0x15b3");
    fake.file("sys/class/net/eth0/speed", "400000").file("sys/class/net/eth0/device/vendor", "0x15b3");
  });
  ASSERT_EQ(machine.network.size(), 1u);
  EXPECT_EQ(machine.network[0].name, "mlx5_0:1");
  EXPECT_EQ(machine.network[0].pci_rate, std::nullopt);
}

TEST(Identities, AreFoundByAddress) {
  FakeRoot fake;
  EXPECT_TRUE(slots_by_address(fake.root()).empty());
  EXPECT_TRUE(serials_of_gpus(fake.root()).empty());
  fake.file("sys/bus/pci/slots/7/address", "0000:1b:00").file("sys/bus/pci/slots/2-1/address", "0000:3d:00");
  fake.file("nvml.json", R"({"devices": [{"pci": "0000:1b:00.0", "serial": "165"}]})");
  EXPECT_EQ(slots_by_address(fake.root()),
            (std::map<std::string, std::string>{{"0000:1b:00", "7"}, {"0000:3d:00", "2-1"}}));
  EXPECT_EQ(serials_of_gpus(fake.root()), (std::map<std::string, std::string>{{"0000:1b:00.0", "165"}}));
}

TEST(CpuNames, ArmCoresAreNamedByTheirNumbers) {
  const auto name = [](const char* implementer, const char* part, const char* vendor = "") {
    FakeRoot fake;
    fake.file("proc/cpuinfo",
              std::string("processor\t: 0\nCPU implementer\t: ") + implementer + "\nCPU part\t: " + part)
        .file("sys/class/dmi/id/sys_vendor", vendor);
    return probe_machine(fake.root()).cpu.name;
  };
  EXPECT_EQ(name("0x41", "0xd4f"), "Arm Neoverse V2");
  EXPECT_EQ(name("0x41", "0xd4f", "NVIDIA"), "Arm Neoverse V2 (NVIDIA Grace)");
  EXPECT_EQ(name("0x41", "0xd40", "Amazon EC2"), "Arm Neoverse V1 (AWS Graviton3)");
  EXPECT_EQ(name("0x41", "0xd0c", "Ampere(R)"), "Arm Neoverse N1 (Ampere Altra)");
  EXPECT_EQ(name("0xc0", "0xac3"), "Ampere AmpereOne");
  EXPECT_EQ(name("0x41", "0xfff"), "Arm part 0xfff");
  EXPECT_EQ(name("0x99", "0x001"), "0x99 part 0x001");
}

TEST(CpuNames, AModelThatItsFlagsContradictIsNotBelieved) {
  const auto cpu = [](const char* vendor, int family, int model, const char* flags) {
    FakeRoot fake;
    fake.file("proc/cpuinfo",
              fmt::format("processor : 0\nvendor_id : {}\ncpu family : {}\nmodel : {}\nmodel name : A CPU\n"
                          "stepping : 4\nflags : {}",
                          vendor, family, model, flags));
    return probe_machine(fake.root()).cpu;
  };
  const auto rocket = cpu("GenuineIntel", 6, 167, "avx2 avx512f avx512_vnni amx_tile");
  EXPECT_EQ(rocket.name, "Intel, Sapphire Rapids or later (reported as model 167)");
  EXPECT_EQ(rocket.contradicting, "amx_tile");
  EXPECT_EQ(cpu("GenuineIntel", 6, 167, "avx2 avx512f avx512_vnni").name, "A CPU");
  EXPECT_EQ(cpu("GenuineIntel", 6, 0x8f, "avx512f avx512_fp16 amx_tile").name, "A CPU");
  EXPECT_EQ(cpu("GenuineIntel", 6, 0x55, "avx512f avx512_vnni").name,
            "Intel, Cascade Lake or later (reported as model 85)");
  EXPECT_EQ(cpu("GenuineIntel", 6, 250, "amx_tile").name, "A CPU") << "a model that is not known may have it";
  EXPECT_EQ(cpu("AuthenticAMD", 25, 1, "avx512f").name, "AMD, Zen 4 or later (reported as family 25, model 1)");
  EXPECT_EQ(cpu("AuthenticAMD", 25, 17, "avx512f").name, "A CPU");
}

}  // namespace
}  // namespace assay
