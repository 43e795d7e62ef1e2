// --expect: what falls short is listed, and a bad file is refused with every error it has. The shipped sheets are
// plausible.
#include "harness/machine/expectation.h"

#include "harness/core/error.h"
#include "harness/core/words.h"
#include "harness/json/json.h"
#include "tests/support/refusal.h"
#include "tests/unit/machine/fake_machines.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::HasSubstr;

class Expect : public testing::Test {
 protected:
  FakeRoot machine_;
  FakeRoot files_;
  std::vector<HardwareSheet> sheets_ = shipped_hardware();

  // "what: expected, found", one per line.
  std::vector<std::string> short_of(const std::string& text, bool unread = false) {
    std::vector<std::string> lines;
    for (const auto& each : all_of(text))
      if (each.unread == unread) lines.push_back(each.what + ": " + each.expected + ", " + each.found);
    return lines;
  }
  std::vector<std::string> not_judged(const std::string& text) { return short_of(text, true); }
  std::vector<Shortfall> all_of(const std::string& text) {
    files_.file("expect.json", text);
    return shortfalls(read_expectation(files_.path() / "expect.json", machine_.root()), probe_machine(machine_.root()),
                      sheets_, machine_.root());
  }
  std::string refused(const std::string& text) {
    files_.file("expect.json", text);
    return test::refusal([&] { read_expectation(files_.path() / "expect.json"); });
  }
};

TEST_F(Expect, AllHeld) {
  make_aws_p5(machine_);
  EXPECT_THAT(
      short_of(R"({"schema":1, /* ordered in May */ "cpu":{"cores":2,"model":"*epyc*","isa":["AVX2","avx512-bf16"]},
                           "memory":"32GiB","gpus":{"count":2,"name":"*H100*","link_generation":5,"link_width":8}})"),
      testing::ElementsAre());
  EXPECT_THAT(short_of(R"({"schema":1})"), testing::ElementsAre());
}

TEST_F(Expect, EveryShortfallIsListed) {
  make_aws_p5(machine_);
  EXPECT_THAT(
      short_of(
          R"({"schema":1,"cpu":{"cores":3,"model":"*Xeon*","isa":["amx_bf16","avx2"]},"memory":"33GiB","numa_nodes":2,
                           "gpus":{"count":8,"name":"*H200*","link_width":16,"link_generation":6}})"),
      testing::ElementsAre("cpu.cores: 3, 2", "cpu.model: *Xeon*, AMD EPYC 7R13 Processor", "cpu.isa: amx_bf16, absent",
                           "memory: 33 GiB, 32 GiB", "numa_nodes: 2, 0", "gpus.count: 8, 2",
                           "gpus.name 0000:53:00.0: *H200*, NVIDIA H100 80GB HBM3",
                           "gpus.link_generation 0000:53:00.0: 6, 5",
                           "gpus.name 0000:64:00.0: *H200*, NVIDIA H100 80GB HBM3",
                           "gpus.link_width 0000:64:00.0: 16, 8", "gpus.link_generation 0000:64:00.0: 6, 5"));
}

TEST_F(Expect, LimitsOfAContainerCount) {
  make_container(machine_);
  EXPECT_THAT(short_of(R"({"schema":1,"cpu":{"cores":4},"memory":"4GiB"})"),
              testing::ElementsAre("cpu.cores: 4, 2 usable of 4", "memory: 4 GiB, 2 GiB by the cgroup's limit"));
  EXPECT_THAT(short_of(R"({"schema":1,"cpu":{"cores":2},"memory":2147483648})"),
              testing::ElementsAre("cpu.cores: 2, 1.5 by the cgroup's quota"));
}

TEST_F(Expect, WithoutMemoryBlocksTheKernelsShareIsAdded) {
  machine_.file("proc/meminfo", "MemTotal: 16000000 kB");  // of 16 GiB = 16777216 kB
  EXPECT_THAT(short_of(R"({"schema":1,"memory":16384000000})"), testing::ElementsAre());
  EXPECT_EQ(short_of(R"({"schema":1,"memory":"16GiB"})").size(), 1u);
  machine_.file("proc/meminfo", "MemTotal: 16400000 kB");
  EXPECT_THAT(short_of(R"({"schema":1,"memory":"16GiB"})"), testing::ElementsAre());
}

TEST_F(Expect, WhatIsUnknownIsNotJudged) {
  const std::string file = R"({"schema":1,"memory":"1GiB","cpu":{"model":"*","cores":1,"isa":["avx2"]},"cpus":2,
                               "swap":"1GiB","kernel":"6.*","bios":"2","mounts":["/home"],"clock_source":"tsc",
                               "gpus":{"link_width":16}})";
  EXPECT_THAT(short_of(file), testing::ElementsAre("gpus: at least 1, 0"));
  EXPECT_THAT(not_judged(file),
              testing::ElementsAre("cpu.cores: 1, unknown", "cpus: 2, unknown", "cpu.isa: avx2, unknown",
                                   "memory: 1 GiB, unknown", "swap: 1 GiB, unknown", "mounts /home: mounted, unknown",
                                   "kernel: 6.*, unknown", "clock_source: tsc, unknown", "bios: 2, unknown"));
  add_gpu(machine_, "0000:01:00.0", "ffff", 0);
  const std::string gpus = R"({"schema":1,"gpus":{"count":1,"name":"*H100*","link_width":16,"pcie":"x16 gen5",
                                                   "nvlinks_active":18,"vbios":"96.*","driver":"570.*"}})";
  EXPECT_THAT(
      not_judged(gpus),
      testing::ElementsAre("gpus.name 0000:01:00.0: *H100*, unknown (10de:ffff)",
                           "gpus.link_width 0000:01:00.0: 16, unknown", "gpus.pcie 0000:01:00.0: x16 gen5, unknown",
                           "gpus.nvlinks_active 0000:01:00.0: 18, unknown", "gpus.vbios 0000:01:00.0: 96.*, unknown"));
  EXPECT_THAT(short_of(gpus), testing::ElementsAre("gpus.driver: 570.*, none loaded"));
}

class Rails : public Expect {
 public:
  // Four ports of one board.
  Rails() {
    for (const char* index : {"0", "1", "2", "3"}) {
      set(index, "board_id", "MT_838").set(index, "fw_ver", "28.39.1002");
      set(index, "ports/1/state", "4: ACTIVE").set(index, "ports/1/rate", "400 Gb/sec (4X NDR)");
      set(index, "device/current_link_width", "16").set(index, "device/current_link_speed", "32.0 GT/s PCIe");
    }
  }
  Rails& set(const std::string& index, const std::string& file, const std::string& text) {
    machine_.file("sys/class/infiniband/mlx5_" + index + "/" + file, text);
    return *this;
  }
  static std::string file(const std::string& count) {
    return R"({"schema":1,"rails":[{"board_id":"MT_838",)" + count +
           R"("rate":"400 Gb/s","pcie":"x16 gen5","firmware":"28.39.*"}]})";
  }
  const std::string exactly_ = file(R"("count":{"exactly":4},)");
};

TEST_F(Rails, AsBought) {
  EXPECT_THAT(all_of(exactly_), testing::IsEmpty());
  EXPECT_THAT(all_of(file("")), testing::IsEmpty());
  EXPECT_THAT(all_of(R"({"schema":1,"rails":[{"count":3,"rate":400}]})"), testing::IsEmpty());
}

TEST_F(Rails, EveryPortThatLacksSomethingIsNamed) {
  set("0", "ports/1/state", "1: DOWN").set("1", "ports/1/rate", "200 Gb/sec (4X HDR)");
  set("2", "device/current_link_width", "8").set("3", "fw_ver", "28.40.1");
  for (const std::string& count :
       {std::string(), std::string(R"("count":4,)"), std::string(R"("count":{"exactly":4},)")})
    EXPECT_THAT(
        short_of(file(count)),
        testing::ElementsAre("rails.state mlx5_0:1: ACTIVE, DOWN", "rails.rate mlx5_1:1: 400 Gb/s, 200 Gb/s",
                             "rails.pcie mlx5_2:1: x16 gen5, x8 gen5", "rails.firmware mlx5_3:1: 28.39.*, 28.40.1"));
  EXPECT_EQ(all_of(exactly_).front().device, "mlx5_0");
}

TEST_F(Rails, CountsAreAtLeastOrExact) {
  set("4", "board_id", "MT_838").set("4", "ports/1/state", "1: DOWN");  // a spare port does not count
  EXPECT_THAT(short_of(exactly_), testing::IsEmpty());
  EXPECT_THAT(short_of(R"({"schema":1,"rails":[{"count":{"exactly":3}}]})"),
              testing::Contains("rails: exactly 3 ports, 5 (mlx5_0:1, mlx5_1:1, mlx5_2:1, mlx5_3:1, mlx5_4:1)"));
  EXPECT_THAT(short_of(R"({"schema":1,"rails":[{"board_id":"MT_9*","count":2}]})"),
              testing::ElementsAre("rails: 2 of board MT_9*, 0"));
}

TEST_F(Rails, WhatIsUnknownMayHoldUnlessTooFewAreLeft) {
  set("0", "fw_ver", "");
  EXPECT_THAT(not_judged(exactly_), testing::ElementsAre("rails.firmware mlx5_0:1: 28.39.*, unknown"));
  EXPECT_THAT(short_of(exactly_), testing::IsEmpty());
  set("1", "ports/1/state", "1: DOWN");
  EXPECT_THAT(short_of(exactly_), testing::ElementsAre("rails.state mlx5_1:1: ACTIVE, DOWN"));
  EXPECT_THAT(not_judged(exactly_), testing::SizeIs(1));
  EXPECT_THAT(all_of(file(R"("count":2,)")), testing::IsEmpty());
}

TEST_F(Expect, PortsOfUnknownRateAreNotJudged) {
  machine_.file("sys/class/net/eth0/operstate", "up").file("sys/class/net/eth1/operstate", "up");
  machine_.file("sys/class/net/eth0/speed", "100000");
  EXPECT_THAT(all_of(R"({"schema":1,"ethernet":{"count":1,"rate":100}})"), testing::IsEmpty());
  EXPECT_THAT(not_judged(R"({"schema":1,"ethernet":{"count":2,"rate":100}})"), testing::SizeIs(1));
  EXPECT_THAT(short_of(R"({"schema":1,"ethernet":{"count":3,"rate":100}})"), testing::SizeIs(1));
}

TEST_F(Expect, ExactSizesAndGpuDirect) {
  machine_.file("proc/meminfo", "MemTotal: 16000000 kB\nSwapTotal: 2097152 kB\nSwapFree: 2097152 kB");
  EXPECT_THAT(short_of(R"({"schema":1,"swap":{"exactly":"2GiB"}})"), testing::IsEmpty());
  EXPECT_THAT(short_of(R"({"schema":1,"swap":{"exactly":0}})"), testing::ElementsAre("swap: at most 0 B, 2 GiB"));
  EXPECT_THAT(short_of(R"({"schema":1,"gpudirect":true})"),
              testing::ElementsAre("gpudirect: true, false (no GPU with a driver)"));
}

TEST_F(Expect, EachShortfallIsAFindingOfItsPart) {
  make_aws_p5(machine_);
  files_.file("expect.json", R"({"schema":1,"gpus":{"vbios":"96.*","name":"*H200*"},"memory":"1TiB","kernel":"7.*"})");
  Expectation expectation = read_expectation(files_.path() / "expect.json", machine_.root());
  expectation.left_out = {"nhc.conf:2: check_ps_service sshd"};
  std::vector<std::string> lines;
  for (const Finding& one :
       findings_of(expectation, shortfalls(expectation, probe_machine(machine_.root()), sheets_, machine_.root())))
    lines.push_back(fmt::format("{} {} {} {}", one.id, word_of(one.severity), one.device, one.seen));
  EXPECT_THAT(lines, testing::IsSupersetOf(
                         {"expected-memory fault  memory: expected 1 TiB, found 32 GiB",
                          "expected-gpu fault 0000:53:00.0 gpus.name 0000:53:00.0: expected *H200*, found NVIDIA H100 "
                          "80GB HBM3",
                          "expected-unread warning 0000:64:00.0 gpus.vbios 0000:64:00.0: expected 96.*, found unknown",
                          "expected-unread warning  not taken over: nhc.conf:2: check_ps_service sshd"}));
}

TEST_F(Rails, AnInventoryHoldsOnItsMachine) {
  make_aws_p5(machine_);
  set("4", "ports/1/state", "1: DOWN").set("3", "fw_ver", "28.40.1");
  machine_.file("proc/mounts", "filer:/home /home nfs4 rw 0 0\n/dev/sda1 / ext4 rw 0 0");
  const Json inventory = inventory_of(probe_machine(machine_.root()), machine_.root());
  EXPECT_EQ(inventory["gpus"]["count"], (Json{{"exactly", 2}}));
  EXPECT_EQ(inventory["rails"].size(), 2u);
  EXPECT_EQ(inventory["rails"][0]["count"], (Json{{"exactly", 3}}));
  EXPECT_EQ(inventory["mounts"], (Json::array({{{"at", "/home"}, {"type", "nfs4"}}})));
  EXPECT_THAT(all_of(inventory.dump()), testing::IsEmpty());
}

TEST_F(Expect, AGpuWithoutADriverIsNamedByItsSheet) {
  add_gpu(machine_, "0000:01:00.0", "2335", 16);
  EXPECT_THAT(short_of(R"({"schema":1,"gpus":{"name":"*H200*"}})"), testing::ElementsAre());
}

TEST_F(Expect, ASlowSlotLowersTheGeneration) {
  // As sysfs has it: devices are links into the tree of bridges.
  machine_.file("sys/devices/pci0/0000:00:01.0/max_link_speed", "16.0 GT/s PCIe")
      .file("sys/devices/pci0/0000:00:01.0/0000:01:00.0/vendor", "0x10de")
      .file("sys/devices/pci0/0000:00:01.0/0000:01:00.0/class", "0x030200")
      .file("sys/devices/pci0/0000:00:01.0/0000:01:00.0/device", "0x2331")
      .file("sys/devices/pci0/0000:00:01.0/0000:01:00.0/max_link_speed", "32.0 GT/s PCIe");
  machine_.link("sys/bus/pci/devices/0000:01:00.0", "../../../devices/pci0/0000:00:01.0/0000:01:00.0");
  EXPECT_THAT(short_of(R"({"schema":1,"gpus":{"link_generation":5}})"),
              testing::ElementsAre("gpus.link_generation 0000:01:00.0: 5, 4"));
}

TEST_F(Expect, PortsMountsAndVersionsAreCompared) {
  for (const char* index : {"0", "1", "2"})
    machine_
        .file(std::string("sys/class/infiniband/mlx5_") + index + "/ports/1/state",
              std::string(index) == "2" ? "1: DOWN" : "4: ACTIVE")
        .file(std::string("sys/class/infiniband/mlx5_") + index + "/ports/1/rate",
              std::string(index) == "1" ? "200 Gb/sec (2X NDR)" : "400 Gb/sec (4X NDR)");
  machine_.file("sys/class/net/eth0/type", "1")
      .file("sys/class/net/eth0/operstate", "up")
      .file("sys/class/net/eth0/speed", "100000");
  machine_.file("proc/mounts", "/dev/sda1 / ext4 rw,relatime 0 0\nfiler:/home /home nfs4 ro 0 0");
  machine_.file("proc/meminfo", "MemTotal: 16000000 kB\nSwapTotal: 2097152 kB\nSwapFree: 2097152 kB");
  machine_.file("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc");
  EXPECT_THAT(short_of(R"({"schema":1,"infiniband":{"count":1,"rate":400},"ethernet":{"count":{"exactly":1},"rate":100},
      "mounts":["/home",{"at":"/","type":"ext*","writable":true}],"swap":"2GiB","clock_source":"tsc"})"),
              testing::ElementsAre());
  EXPECT_THAT(short_of(R"({"schema":1,"infiniband":{"count":3,"rate":400},"ethernet":{"count":{"exactly":2}},
      "mounts":["/scratch",{"at":"/home","source":"other:*","type":"lustre","writable":true}],"swap":"4GiB",
      "clock_source":"hpet","driver":"570.*"})"),
              testing::ElementsAre("swap: 4 GiB, 2 GiB",
                                   "infiniband: 3 of 400 Gbit/s, 1 (mlx5_1:1 of 200 Gbit/s, mlx5_2:1 without a link)",
                                   "ethernet: exactly 2 with a link, 1", "mounts /scratch: mounted, not mounted",
                                   "mounts /home: other:*, filer:/home", "mounts /home: lustre, nfs4",
                                   "mounts /home: writable, read-only", "driver: 570.*, none loaded",
                                   "clock_source: hpet, tsc"));
}

TEST_F(Expect, AnNhcFileIsReadAndWhatIsNotTakenOverIsNamed) {
  machine_.file("proc/sys/kernel/hostname", "n17.example.org")
      .file("proc/meminfo", "MemTotal: 16000000 kB\nSwapTotal: 0 kB")
      .file("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE")
      .file("sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (2X HDR)")
      .file("proc/mounts", "/dev/sda1 / ext4 rw 0 0");
  const std::string file = R"(# Node Health Check
 * || export MARK_OFFLINE=0
 * || check_hw_physmem 16g 16g 10%    # with a fudge
 n17 || check_hw_ib 100
 m* || check_hw_ib 400
 * || check_hw_ib 400 mlx5_0:1
 {n[1-4]} || check_hw_eth eth9
 * || check_fs_mount_rw -t ext4 -s '/(none|sda)/' -f /
 * || check_fs_mount_rw -f /scratch
 * || check_ps_service -u root -S sshd
)";
  EXPECT_THAT(short_of(file), testing::ElementsAre("infiniband: 1 mlx5_0:1 of 400 Gbit/s, 0 (mlx5_0:1 of 100 Gbit/s)",
                                                   "mounts /scratch: mounted, not mounted"));
  EXPECT_THAT(read_expectation(files_.path() / "expect.json", machine_.root()).left_out,
              testing::ElementsAre(HasSubstr(":2: export MARK_OFFLINE=0"), HasSubstr(":7: {n[1-4]} || check_hw_eth"),
                                   HasSubstr(":8: the regular expression /(none|sda)/ of check_fs_mount_rw"),
                                   HasSubstr(":10: check_ps_service")));
}

TEST_F(Expect, BadFilesAreRefusedWithEveryError) {
  const auto errors =
      refused(R"({"schema":1,"cpu":{"cors":2,"cores":"two"},"memory":"lots","gpus":{"count":-1},"extra":1})");
  for (const auto* part : {"/cpu/cors", "cores", "/memory", "/gpus/count", "/extra"})
    EXPECT_THAT(errors, HasSubstr(part));
  EXPECT_THAT(refused(R"({"cpu":{"cores":2}})"), HasSubstr("schema"));
  EXPECT_THAT(refused(R"({"schema":2})"), HasSubstr("schema"));
  EXPECT_THAT(refused("[]"), HasSubstr("object"));
  EXPECT_THAT(refused("{"), HasSubstr("expect.json"));
  EXPECT_NE(refused(""), "");
  EXPECT_NE(refused(R"({"schema":1,"gpus":{"name":""}})"), "");
  EXPECT_NE(refused(R"({"schema":1,"cpu":[]})"), "");
  for (const char* link : {"", "x16gen5", "16", "x", "gen", "x-1", "x16 gen5 fast"})
    EXPECT_THAT(refused(fmt::format(R"({{"schema":1,"gpus":{{"pcie":"{}"}}}})", link)), HasSubstr("/gpus/pcie"))
        << link;
  EXPECT_THAT(refused(R"({"schema":1,"rails":[{"bord_id":"x"},{"rate":"fast"},{"state":1}]})"),
              testing::AllOf(HasSubstr("/rails/0/bord_id"), HasSubstr("board_id"), HasSubstr("/rails/1/rate"),
                             HasSubstr("/rails/2/state")));
  EXPECT_THAT(refused(R"({"schema":1,"swap":{"exact":1},"cpus":{"exactly":"two"}})"), HasSubstr("/swap/exact"));
  EXPECT_THROW(read_expectation(files_.path() / "missing.json"), UsageError);
  EXPECT_THROW(read_expectation(files_.path()), UsageError);
}

TEST(Shortfalls, AreOneLineEach) {
  EXPECT_EQ(shortfalls_text("want.json", Expectation(), {}), "\nwant.json: all held\n");
  EXPECT_EQ(shortfalls_text("want.json", Expectation(), {{"cpu.cores", "64", "32"}}),
            "\nwant.json: 1 shortfall\n  cpu.cores: expected 64, found 32\n");
  EXPECT_EQ(shortfalls_text("want.json", Expectation(), {{"kernel", "6.*", "unknown", "", true}}),
            "\nwant.json: all that was judged held\n  not judged: kernel: expected 6.*, found unknown\n");
  Expectation other;
  other.left_out = {"nhc.conf:2: check_ps_service sshd"};
  EXPECT_EQ(shortfalls_text("nhc.conf", other, {}),
            "\nnhc.conf: all that was taken over held\n  not taken over: nhc.conf:2: check_ps_service sshd\n");
}

TEST(Pattern, StarsAndQuestionMarks) {
  EXPECT_TRUE(matches("*EPYC*", "AMD epyc 9654"));
  EXPECT_TRUE(matches("NVIDIA H?00", "NVIDIA H200"));
  EXPECT_FALSE(matches("NVIDIA H200", "NVIDIA H200 NVL"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_FALSE(matches("", "x"));
  EXPECT_TRUE(matches("a*b*c", "aXbXbc"));
  EXPECT_FALSE(matches("a*b*c", "aXcXb"));
}

class Sheets : public testing::Test {
 protected:
  std::vector<HardwareSheet> all_ = shipped_hardware();
};

TEST_F(Sheets, HavePlausibleFigures) {
  ASSERT_GE(all_.size(), 10u);
  std::vector<std::string> ids;
  for (const auto& sheet : all_) {
    SCOPED_TRACE(sheet.name);
    EXPECT_TRUE(sheet.memory_bandwidth.has_value());
    // Base units: a figure that is off by a thousand is outside these ranges.
    EXPECT_GT(*sheet.memory_bandwidth, 1e11);
    EXPECT_LT(*sheet.memory_bandwidth, 2e13);
    EXPECT_GT(sheet.tdp_watts.value_or(100), 50);
    EXPECT_LT(sheet.tdp_watts.value_or(100), 2000);
    for (const auto& [dtype, peak] : sheet.peak) {
      EXPECT_GT(peak, 1e12) << dtype;
      EXPECT_LT(peak, 1e16) << dtype;
    }
    for (const auto& link : sheet.links) EXPECT_LE(link.bytes_per_second, 1e12) << link.name;
    if (sheet.kind == "gpu") {
      EXPECT_FALSE(sheet.peak.empty());
      EXPECT_FALSE(sheet.pci_ids.empty());
      ASSERT_TRUE(sheet.memory_bytes.has_value());
      EXPECT_EQ(*sheet.memory_bytes % 1000000000, 0u);
      // Tensor cores: half the bits, twice the rate.
      if (sheet.peak.contains("tf32") && sheet.peak.contains("bf16")) {
        EXPECT_NEAR(sheet.peak.at("bf16") / sheet.peak.at("tf32"), 2, 0.05);
      }
      if (sheet.peak.contains("fp8_e4m3")) {
        EXPECT_NEAR(sheet.peak.at("fp8_e4m3") / sheet.peak.at("bf16"), 2, 0.05);
      }
    }
    ids.insert(ids.end(), sheet.pci_ids.begin(), sheet.pci_ids.end());
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end()) << "a PCI id belongs to one sheet";
}

TEST_F(Sheets, AreFoundByTheNamesThatDriversReport) {
  // Each name with its sheet, or without one for cards and processors that have none.
  const std::vector<std::pair<std::string, std::string>> names = {
      {"NVIDIA H100 80GB HBM3", "h100-sxm"},
      {"NVIDIA H100 PCIe", "h100-pcie"},
      {"NVIDIA H100 NVL", ""},
      {"NVIDIA H200", "h200-sxm"},
      {"NVIDIA H200 NVL", ""},
      {"NVIDIA H20", ""},
      {"NVIDIA A100-SXM4-40GB", "a100-sxm-40gb"},
      {"NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"},
      {"NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"},
      {"NVIDIA A100 80GB PCIe", "a100-pcie-80gb"},
      {"NVIDIA A10", "a10"},
      {"NVIDIA A10G", ""},
      {"NVIDIA A10-24Q", ""},
      {"NVIDIA A30", "a30"},
      {"NVIDIA A40", ""},
      {"NVIDIA L4", "l4"},
      {"NVIDIA L40", ""},
      {"NVIDIA L40S", "l40s"},
      {"Tesla T4", "t4"},
      {"Tesla V100-SXM2-16GB", "v100-sxm2-16gb"},
      {"Tesla V100-SXM2-32GB", "v100-sxm2-32gb"},
      {"Tesla V100-PCIE-16GB", ""},
      {"NVIDIA B200", "b200"},
      {"NVIDIA B300 SXM6 AC", "b300"},
      {"NVIDIA GB200", "gb200"},
      {"NVIDIA GB300", ""},
      {"NVIDIA GH200 480GB", "gh200-96gb"},
      {"NVIDIA GH200 144G HBM3e", "gh200-144gb"},
      {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", ""},
      {"NVIDIA GeForce RTX 3080", ""},  // of 10 or 12 GB
      {"NVIDIA GeForce RTX 3080 10GB", "rtx-3080-10gb"},
      {"NVIDIA GeForce RTX 3080 Ti", ""},
      {"NVIDIA GeForce RTX 3080 Laptop GPU", ""},
      {"NVIDIA GeForce RTX 3090", "rtx-3090"},
      {"NVIDIA GeForce RTX 3090 Ti", ""},
      {"NVIDIA GeForce RTX 4080", "rtx-4080"},
      {"NVIDIA GeForce RTX 4080 SUPER", ""},
      {"NVIDIA GeForce RTX 4090", "rtx-4090"},
      {"NVIDIA GeForce RTX 4090 D", ""},
      {"NVIDIA GeForce RTX 4090 Laptop GPU", ""},
      {"NVIDIA GeForce RTX 5080", "rtx-5080"},
      {"NVIDIA GeForce RTX 5090", "rtx-5090"},
      {"NVIDIA GeForce RTX 5090 D", ""},
      {"NVIDIA RTX A6000", "rtx-a6000"},
      {"Quadro RTX 6000", ""},
      {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"},
      {"NVIDIA RTX 5000 Ada Generation", ""},
      {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000-workstation"},
      {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-max-q"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-server"},
      {"AMD Instinct MI300X", "mi300x"},
      {"AMD Instinct MI300A", ""},
      {"AMD Instinct MI325X", ""},
      {"AMD Instinct MI355X", "mi355x"},
      {"AMD EPYC 7763 64-Core Processor", "epyc-7763"},
      {"AMD EPYC 9654 96-Core Processor", "epyc-9654"},
      {"AMD EPYC 9354P 32-Core Processor", "epyc-9004"},
      {"AMD EPYC 9684X 96-Core Processor", "epyc-9004"},
      {"AMD EPYC 9655 96-Core Processor", "epyc-9005"},
      {"AMD EPYC 9575F 64-Core Processor", "epyc-9005"},
      {"AMD EPYC 9R14", ""},
      {"AMD EPYC", ""},
      {"Intel(R) Xeon(R) Platinum 8480+", "xeon-8480-plus"},
      {"INTEL(R) XEON(R) PLATINUM 8592+", "xeon-8592-plus"},
      {"INTEL(R) XEON(R) PLATINUM 8580", "xeon-5-ddr5-5600"},
      {"INTEL(R) XEON(R) PLATINUM 8558", "xeon-5-ddr5-5200"},
      {"INTEL(R) XEON(R) PLATINUM 8558P", ""},
      {"INTEL(R) XEON(R) GOLD 6548Y+", "xeon-5-ddr5-5200"},
      {"Intel(R) Xeon(R) 6980P", "xeon-6900p"},
      {"Intel(R) Xeon(R) 6787P", "xeon-6700p"},
      {"Intel(R) Xeon(R) 6780E", "xeon-6700e"},
      {"Intel(R) Xeon(R) Processor", ""},
      {"Arm Neoverse V1 (AWS Graviton3)", "graviton3"},
      {"Arm Neoverse V2 (AWS Graviton4)", "graviton4"},
      {"Arm Neoverse V2 (NVIDIA Grace)", "grace"},
      {"Arm Neoverse V2 (Google Axion)", ""},
      {"Arm Neoverse V2", ""}};
  std::set<std::string> unseen;
  for (const HardwareSheet& sheet : all_) unseen.insert(sheet.name);
  for (const auto& [name, wanted] : names) {
    std::vector<std::string> found;
    for (const HardwareSheet& sheet : all_)
      if (std::ranges::any_of(sheet.match,
                              [&, name = name](const std::string& pattern) { return matches(pattern, name); }))
        found.push_back(sheet.name);
    EXPECT_EQ(found, wanted.empty() ? std::vector<std::string>() : std::vector<std::string>{wanted}) << name;
    unseen.erase(wanted);
  }
  EXPECT_THAT(unseen, testing::IsEmpty()) << "sheets without a name in this list";
}

TEST(Sheet, WithoutASourceIsRefused) {
  FakeRoot files;
  const auto refused = [&](const std::string& text) {
    files.file("x.json", text);
    return test::refusal([&] { read_hardware(files.path() / "x.json"); });
  };
  const std::string start = R"({"schema":1,"description":"X","kind":"gpu","match":["X"],)";
  EXPECT_EQ(refused(start + R"("tdp_watts":700,"sources":{"tdp_watts":"The datasheet of X"}})"), "");
  EXPECT_THAT(refused(start + R"("tdp_watts":700,"sources":{}})"), HasSubstr("no source for tdp_watts"));
  EXPECT_THAT(refused(start + R"("tdp_watt":700,"sources":{}})"), HasSubstr("tdp_watt"));
  EXPECT_THAT(refused(start + R"("peak":{"bf17":1e12},"sources":{"peak":"The datasheet of X"}})"),
              HasSubstr("/peak/bf17"));
  EXPECT_THAT(refused(start + R"("memory_bandwidth":0,"sources":{"memory_bandwidth":"The datasheet of X"}})"),
              HasSubstr("too small"));
  EXPECT_THAT(refused(R"({"schema":1,"description":"X","kind":"tpu","match":[],"sources":{}})"), HasSubstr("kind"));
}

}  // namespace
}  // namespace assay
