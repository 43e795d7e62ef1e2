#include "harness/sensors/outside_cpu.h"

#include "tests/unit/machine/fake_root.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

namespace assay {
namespace {

using testing::DoubleNear;

// Two CPUs; process 100 is this run. Times are in ticks of 10 ms.
class OutsideCpuTest : public testing::Test {
 protected:
  OutsideCpuTest() {
    fake.link("proc/self", "100");
    process(100, 1, "assay", 0);
    spend({});
  }

  void process(Pid pid, Pid parent, const std::string& name, std::int64_t ticks, std::int64_t children = 0,
               const char* flags = "0") {
    fake.file(fmt::format("proc/{}/stat", pid), fmt::format("{} ({}) R {} 1 1 0 -1 {} 0 0 0 0 {} 0 {} 0 20 0 1 0 1",
                                                            pid, name, parent, flags, ticks, children));
  }
  // CPU 0 and 1 each: ticks busy and stolen, of `seconds` since the last call.
  void spend(std::map<int, std::pair<int, int>> ticks, double seconds = 0) {
    std::string text = "cpu 0 0 0 0\n";
    for (const int cpu : {0, 1}) {
      auto& [busy, steal, idle] = spent[cpu];
      busy += ticks[cpu].first;
      steal += ticks[cpu].second;
      idle += static_cast<int>(100 * seconds) - ticks[cpu].first - ticks[cpu].second;
      text += fmt::format("cpu{} {} 0 0 {} 0 0 0 {}\n", cpu, busy, idle, steal);
    }
    fake.file("proc/stat", text);
  }
  std::vector<Reading> read(OutsideCpuSensor& sensor, double seconds) {
    std::vector<Reading> readings;
    sensor.read(seconds, readings);
    return readings;
  }

  FakeRoot fake;
  std::map<int, std::tuple<int, int, int>> spent;
};

TEST_F(OutsideCpuTest, AQuietMachineShowsNothing) {
  OutsideCpuSensor sensor(fake.root(), {0, 1});
  sensor.begin();
  EXPECT_TRUE(read(sensor, 0).empty());
  for (int second = 1; second <= 3; ++second) {
    spend({{0, {99, 0}}, {1, {50, 0}}}, 1);
    process(100, 1, "assay", 149 * second);
    const auto readings = read(sensor, second);
    ASSERT_EQ(readings.size(), 1u);
    EXPECT_EQ(readings[0].name, "outside_cpu");
    EXPECT_EQ(readings[0].value, 0.0);
  }
  const auto outside = sensor.in_window(0.5, 2.5);
  ASSERT_TRUE(outside);
  EXPECT_EQ(outside->usable, 2);
  EXPECT_EQ(outside->seconds, 3);
  EXPECT_EQ(outside->cpus, 0);
  EXPECT_EQ(outside->steal, 0);
  EXPECT_EQ(outside->throttled, std::nullopt);
  EXPECT_TRUE(outside->processes.empty());
}

// Half a CPU goes to process 50, and 0.2 to what no process here accounts for; a tenth is stolen.
TEST_F(OutsideCpuTest, OthersAreNamedWithTheirShares) {
  process(50, 1, "stress", 1000);
  process(51, 1, "idle", 7);
  process(52, 2, "kworker", 0, 0, "2129984");
  OutsideCpuSensor sensor(fake.root(), {0, 1});
  sensor.begin();
  read(sensor, 0);
  for (int second = 1; second <= 4; ++second) {
    spend({{0, {60, 10}}, {1, {60, 0}}}, 1);
    process(100, 1, "assay", 50 * second);
    process(50, 1, "stress", 1000 + 50 * second);
    process(52, 2, "kworker", 20 * second, 0, "2129984");
    read(sensor, second);
  }
  const auto outside = sensor.in_window(1, 4);
  ASSERT_TRUE(outside);
  EXPECT_THAT(outside->cpus, DoubleNear(0.7, 1e-9));
  EXPECT_THAT(outside->steal, DoubleNear(0.1, 1e-9));
  ASSERT_EQ(outside->processes.size(), 1u);
  EXPECT_EQ(outside->processes[0].pid, 50);
  EXPECT_EQ(outside->processes[0].name, "stress");
  EXPECT_THAT(outside->processes[0].cpus, DoubleNear(0.5, 1e-9));
}

// Only from second 4 on is another process busy.
TEST_F(OutsideCpuTest, OnlyTheWindowCounts) {
  OutsideCpuSensor sensor(fake.root(), {0, 1});
  sensor.begin();
  read(sensor, 0);
  for (int second = 1; second <= 8; ++second) {
    const int others = second > 4 ? 100 : 0;
    spend({{0, {50, 0}}, {1, {others, 0}}}, 1);
    process(100, 1, "assay", 50 * second);
    process(60, 1, "late", std::max(0, 100 * (second - 4)));
    read(sensor, second);
  }
  EXPECT_EQ(sensor.in_window(1, 3)->cpus, 0);
  EXPECT_EQ(sensor.in_window(5, 8)->cpus, 1);
  EXPECT_EQ(sensor.in_window(5, 8)->processes.size(), 1u);
}

// A process of the run that began after the first list is the run's own.
TEST_F(OutsideCpuTest, ChildrenOfTheRunAreItsOwn) {
  OutsideCpuSensor sensor(fake.root(), {0, 1});
  sensor.begin();
  read(sensor, 0);
  for (int second = 1; second <= 4; ++second) {
    spend({{0, {100, 0}}, {1, {0, 0}}}, 1);
    process(101, 100, "loader", 100 * second);
    read(sensor, second);
  }
  EXPECT_EQ(sensor.in_window(0, 4)->cpus, 0);
}

// A build: its compilers live shortly, and their time is the parent's once they have ended.
TEST_F(OutsideCpuTest, WhatEndedChildrenUsedIsTheirParents) {
  process(70, 1, "make", 0);
  OutsideCpuSensor sensor(fake.root(), {0, 1});
  sensor.begin();
  read(sensor, 0);
  for (int second = 1; second <= 3; ++second) {
    spend({{0, {80, 0}}, {1, {0, 0}}}, 1);
    process(70, 1, "make", 0, 80 * second);
    read(sensor, second);
  }
  const auto outside = sensor.in_window(0, 3);
  ASSERT_EQ(outside->processes.size(), 1u);
  EXPECT_EQ(outside->processes[0].name, "make");
  EXPECT_THAT(outside->processes[0].cpus, DoubleNear(0.8, 1e-9));
}

TEST_F(OutsideCpuTest, OtherCpusDoNotCount) {
  process(50, 1, "stress", 0);
  fake.file("proc/50/status", "Name:\tstress\nCpus_allowed_list:\t1\n");
  OutsideCpuSensor sensor(fake.root(), {0});
  sensor.begin();
  read(sensor, 0);
  for (int second = 1; second <= 2; ++second) {
    spend({{0, {20, 0}}, {1, {100, 0}}}, 1);
    process(50, 1, "stress", 100 * second);
    read(sensor, second);
  }
  const auto outside = sensor.in_window(0, 2);
  EXPECT_THAT(outside->cpus, DoubleNear(0.2, 1e-9));
  EXPECT_TRUE(outside->processes.empty()) << "it cannot have used CPU 0";
}

TEST_F(OutsideCpuTest, AQuotaIsCountedOnBothVersionsOfCgroups) {
  for (const bool unified : {true, false}) {
    fake.file("proc/self/cgroup", unified ? "0::/box" : "4:cpu,cpuacct:/box");
    const std::string folder = unified ? "sys/fs/cgroup/box/" : "sys/fs/cgroup/cpu,cpuacct/box/";
    if (unified) fake.file("sys/fs/cgroup/cgroup.controllers", "cpu");
    const auto throttle = [&](double seconds) {
      fake.file(folder + "cpu.stat", unified ? fmt::format("nr_throttled 3\nthrottled_usec {:.0f}", 1e6 * seconds)
                                             : fmt::format("nr_throttled 3\nthrottled_time {:.0f}", 1e9 * seconds));
    };
    throttle(5);
    OutsideCpuSensor sensor(fake.root(), {0, 1});
    sensor.begin();
    read(sensor, 0);
    spend({{0, {50, 0}}}, 2);
    throttle(5.5);
    read(sensor, 2);
    EXPECT_EQ(sensor.in_window(0, 2)->throttled, 0.25) << unified;
  }
}

TEST_F(OutsideCpuTest, AWindowThatIsTooShortIsUnknown) {
  OutsideCpuSensor sensor(fake.root(), {0, 1});
  sensor.begin();
  read(sensor, 1);
  EXPECT_FALSE(sensor.in_window(0.9, 1.02));
  EXPECT_TRUE(read(sensor, 1.02).empty());
  EXPECT_FALSE(sensor.in_window(0.9, 1.02));
}

}  // namespace
}  // namespace assay
