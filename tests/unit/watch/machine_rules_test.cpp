// Rules about the machine below a job, at both sides of each limit, and the evidence that they are given.
#include "harness/watch/machine_rules.h"
#include "harness/watch/gpus.h"
#include "harness/watch/places.h"
#include "tests/unit/machine/fake_root.h"

#include <gmock/gmock.h>

namespace assay::watch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// 100 ms a step, of which 2 ms wait for data.
JobSteps steps_on_gpu(double syncs) {
  RankSteps rank{0, {}};
  for (int i = 0; i < 100; ++i) {
    Step step{0.1 * (i + 1), 0.1, 0.002, 0.06, 0, 0.01, 0, 0.09};
    step.parts = true, step.ready = 0.0, step.syncs = static_cast<int>(syncs), step.synced = 0.05 * syncs;
    rank.steps.push_back(step);
  }
  return *steps_of_job({rank});
}

// Nothing is wrong with it.
Surroundings on_gpu() {
  Surroundings around{.ranks = 1, .cpus = 16, .threads = 8, .job_cpus = 2};
  around.cuda = around.gpu_parts = true;
  around.gpus.count = 1, around.gpus.name = "NVIDIA H100 80GB HBM3";
  around.gpus.busy = 0.97, around.gpus.busy_p95 = 0.99, around.gpus.clock = 0.98;
  around.gpus.memory = 70e9, around.gpus.memory_room = 80e9;
  around.cpus_p95 = 0.2;
  return around;
}

std::vector<std::string> machine_rules(const Surroundings& around, double syncs = 0) {
  std::vector<Diagnosis> found;
  add_machine_rules(steps_on_gpu(syncs), around, found);
  std::vector<std::string> rules;
  for (const Diagnosis& one : found) rules.push_back(one.rule);
  return rules;
}

Diagnosis only_rule(const Surroundings& around, double syncs = 0) {
  std::vector<Diagnosis> found;
  add_machine_rules(steps_on_gpu(syncs), around, found);
  EXPECT_EQ(found.size(), 1u);
  return found.empty() ? Diagnosis{} : found.front();
}

TEST(MachineRules, ASoundJobAndOneWithoutEvidenceAreQuiet) {
  EXPECT_THAT(machine_rules(on_gpu()), IsEmpty());
  EXPECT_THAT(machine_rules({.ranks = 2, .cpus = 8, .threads = 4}, 3), IsEmpty());  // a job on CPUs
}

TEST(MachineRules, Throttled) {
  Surroundings around = on_gpu();
  around.gpus.slowed = 0.049, around.gpus.slowed_by = "thermal (hardware)", around.gpus.clock = 0.5;
  EXPECT_THAT(machine_rules(around), IsEmpty());
  around.gpus.slowed = 0.05, around.gpus.slowed_rank = 3;
  const Diagnosis found = only_rule(around);
  EXPECT_EQ(found.rule, "throttled");
  EXPECT_THAT(found.says,
              HasSubstr("rank 3 was slowed down 5 % of the time (thermal (hardware)), at 50 % of its clock"));
  EXPECT_DOUBLE_EQ(found.gain, 2);
}

TEST(MachineRules, HostSync) {
  Surroundings around = on_gpu();
  around.gpus.busy = 0.94;  // 2 % waits for data, 4 % is idle
  EXPECT_THAT(machine_rules(around, 0), IsEmpty());
  const Diagnosis found = only_rule(around, 2);
  EXPECT_EQ(found.rule, "host-sync");
  EXPECT_THAT(found.says, HasSubstr("waits for the GPU 2.0 times a step"));
  EXPECT_NEAR(found.gain, 1 / 0.96, 1e-9);
  around.gpus.busy = 0.955;  // 2.5 % is idle
  EXPECT_THAT(machine_rules(around, 2), IsEmpty());
  around.gpus.busy.reset();
  EXPECT_THAT(machine_rules(around, 2), IsEmpty());
}

TEST(MachineRules, BatchSmall) {
  Surroundings around = on_gpu();
  around.gpus.busy = 0.65, around.gpus.busy_p95 = 0.69, around.gpus.memory = 20e9, around.cpus_p95 = 0.69;
  const Diagnosis found = only_rule(around);
  EXPECT_EQ(found.rule, "batch-small");
  EXPECT_THAT(found.change, HasSubstr("up to 3.6 times by the memory"));
  EXPECT_NEAR(found.gain, 1 / 0.65, 1e-9);
  for (const auto& spoil : std::vector<std::function<void(Surroundings&)>>{
           [](Surroundings& one) { one.gpus.busy_p95 = 0.70; }, [](Surroundings& one) { one.gpus.memory = 56e9; },
           [](Surroundings& one) { one.cpus_p95 = 0.70; }, [](Surroundings& one) { one.cpus_p95.reset(); },
           [](Surroundings& one) { one.gpus.memory_room.reset(); }}) {
    Surroundings busy = around;
    spoil(busy);
    EXPECT_THAT(machine_rules(busy), IsEmpty());
  }
}

TEST(MachineRules, Oversized) {
  Surroundings around = on_gpu();
  around.gpus.busy = 0.4, around.gpus.busy_p95 = 0.5, around.cpus_p95 = 0.9;
  EXPECT_THAT(machine_rules(around), IsEmpty());
  around.gpus.busy_p95 = 0.49, around.gpus.memory = 20e9;
  const auto need = smaller_gpu(around.gpus);
  ASSERT_TRUE(need);
  EXPECT_NEAR(need->bytes, 22e9, 1);
  EXPECT_DOUBLE_EQ(need->share, 0.49);
  EXPECT_EQ(only_rule(around).rule, "oversized");
  EXPECT_THAT(only_rule(around).change, HasSubstr("a smaller GPU"));
  around.cheapest = CheapestGpu{false, "small.1x at 1.00 USD/h"};
  EXPECT_EQ(only_rule(around).change, "small.1x at 1.00 USD/h");
  around.cheapest->own = true;  // nothing smaller is cheaper
  EXPECT_THAT(machine_rules(around), IsEmpty());
}

TEST(MachineRules, Numa) {
  Surroundings around = on_gpu();
  around.places = {{0, 0, 1.0, 0, 0.19}, {1, 1, 1.0, 1, {}}};
  EXPECT_THAT(machine_rules(around), IsEmpty());
  around.places[0].remote = 0.2;
  EXPECT_THAT(only_rule(around).says, HasSubstr("20 % of the memory of rank 0 is not on its NUMA node 0"));
  around.places[0].remote.reset();
  around.places[1].gpu_node = 0;
  const Diagnosis found = only_rule(around);
  EXPECT_EQ(found.rule, "numa");
  EXPECT_THAT(found.says, HasSubstr("rank 1 runs on NUMA node 1, its GPU is on 0"));
  EXPECT_THAT(found.change, HasSubstr("--cpunodebind=0 --membind=0"));
  around.places[1].on_node = 0.89;  // it is on no node for long
  EXPECT_THAT(machine_rules(around), IsEmpty());
}

std::string stat_on_cpu(int cpu) {
  std::string text = "50 (a b) c) S";
  for (int field = 4; field <= 38; ++field) text += " 0";
  return text + " " + std::to_string(cpu) + " 0 0";
}

FakeRoot& two_nodes(FakeRoot& root) {
  root.file("sys/devices/system/node/online", "0-1");
  root.file("sys/devices/system/node/node0/cpulist", "0-3").file("sys/devices/system/node/node1/cpulist", "4-7");
  return root;
}

RankInfo rank_info(pid_t pid, int rank, const std::string& pci) {
  RankInfo info;
  info.pid = pid, info.rank = rank, info.gpu_pci = pci;
  return info;
}

TEST(WatchPlaces, ARanksNodeItsGpusAndItsPages) {
  FakeRoot root;
  two_nodes(root).file("proc/50/stat", stat_on_cpu(5)).file("sys/bus/pci/devices/0000:1b:00.0/numa_node", "0");
  root.file("proc/50/numa_maps",
            "7f00 default anon=300 N0=100 N1=200 kernelpagesize_kB=4\n"
            "7f10 default file=/lib/libc.so mapped=900 N0=900 kernelpagesize_kB=4\n"
            "7f20 default huge anon=1 N1=1 kernelpagesize_kB=400");
  Places places(root.root());
  const RankInfo rank = rank_info(50, 3, "0000:1b:00.0");
  places.look(1, rank), places.look(2, rank);
  EXPECT_THAT(places.ranks(), IsEmpty());  // too few looks
  places.look(12, rank);
  const auto seen = places.ranks();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].rank, 3);
  EXPECT_EQ(seen[0].node, 1);
  EXPECT_DOUBLE_EQ(seen[0].on_node, 1);
  EXPECT_EQ(seen[0].gpu_node, 0);
  EXPECT_NEAR(seen[0].remote.value_or(0), 1.0 / 4, 1e-9);  // 400 of 1,600 KiB
}

TEST(WatchPlaces, WhatIsUnknownIsAbsent) {
  FakeRoot root;
  two_nodes(root).file("proc/50/stat", stat_on_cpu(0)).file("sys/bus/pci/devices/0000:1b:00.0/numa_node", "-1");
  Places places(root.root());
  for (int i = 0; i < 4; ++i)
    places.look(4 * i, rank_info(50, 0, "0000:1b:00.0")), places.look(i, rank_info(51, 1, ""));
  ASSERT_EQ(places.ranks().size(), 1u);  // 51 has ended
  EXPECT_FALSE(places.ranks()[0].gpu_node || places.ranks()[0].remote);
  FakeRoot single;
  single.file("sys/devices/system/node/online", "0").file("sys/devices/system/node/node0/cpulist", "0-3");
  single.file("proc/50/stat", stat_on_cpu(0));
  Places none(single.root());
  for (int i = 0; i < 4; ++i) none.look(i, rank_info(50, 0, ""));
  EXPECT_FALSE(none.several_nodes());
  EXPECT_THAT(none.ranks(), IsEmpty());
}

Series series_of(std::vector<double> values) {
  Series series;
  for (std::size_t i = 0; i < values.size(); ++i)
    series.at.push_back(static_cast<double>(i)), series.values.emplace_back(values[i]);
  return series;
}

TEST(WatchGpus, UseIsReadFromTheSeries) {
  std::map<std::string, Series> series{{"gpu_utilisation", series_of({0.2, 0.4, 0.4, 0.4, 0.6})},
                                       {"gpu_memory_used", series_of({5e9, 9e9, 7e9})},
                                       {"gpu_clock", series_of({1e9, 1e9, 1e9, 1e9, 2e9})},
                                       {"gpu_throttled_hardware_thermal", series_of({3, 3, 4, 5, 5})}};
  const GpuUse use = use_of_gpu(series, 2e9);
  EXPECT_DOUBLE_EQ(*use.busy, 0.4);
  EXPECT_GT(*use.busy_p95, 0.5);
  EXPECT_DOUBLE_EQ(*use.memory, 9e9);
  EXPECT_DOUBLE_EQ(*use.clock, 0.6);
  EXPECT_DOUBLE_EQ(use.slowed, 0.5);  // 2 of 4 s
  EXPECT_EQ(use.slowed_by, "thermal (hardware)");
  // Without counters by the reasons that readings gave: bit 0x40, not the power cap 0x4.
  series.erase("gpu_throttled_hardware_thermal");
  series["gpu_throttle_reasons"] = series_of({0, 0x40, 0x4, 0x44, 0});
  EXPECT_DOUBLE_EQ(use_of_gpu(series, {}).slowed, 0.4);
  series["gpu_utilisation"] = series_of({0.2, 0.4});
  EXPECT_FALSE(use_of_gpu(series, {}).busy);
}

TEST(WatchGpus, ThePeakOfASheetIsThatOfTheDtype) {
  const auto peak = peak_of_gpu("NVIDIA H100 80GB HBM3", "bf16");
  ASSERT_TRUE(peak);
  EXPECT_DOUBLE_EQ(peak->flops, 989e12);
  EXPECT_THAT(peak->source, HasSubstr("bf16 of h100-sxm"));
  EXPECT_FALSE(peak_of_gpu("NVIDIA H100 80GB HBM3", ""));
  EXPECT_FALSE(peak_of_gpu("a card that nobody sells", "bf16"));
}

}  // namespace
}  // namespace assay::watch
