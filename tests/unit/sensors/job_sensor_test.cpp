// What the processes of a job use, from files as the kernel writes them.
#include "harness/sensors/job_sensor.h"

#include "tests/unit/machine/fake_root.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <map>

namespace assay {
namespace {

// A shell (10) of the user runs the job (20), which starts workers.
class JobSensorTest : public testing::Test {
 protected:
  JobSensorTest() {
    add(10, 1, {.user = 5000});
    add(20, 10, {.user = 100, .system = 20, .pages = 1000, .shared = 400});
  }
  struct Of {
    int user = 0, system = 0, children = 0, threads = 1, pages = 0, shared = 0;
    int read = 0;
  };
  void add(int pid, int parent, const Of& of) {
    const std::string folder = fmt::format("proc/{}/", pid);
    fake.file(folder + "stat", fmt::format("{} (python) S {} 1 1 0 -1 0 0 0 0 0 {} {} {} 0 20 0 {} 0 99", pid, parent,
                                           of.user, of.system, of.children, of.threads));
    fake.file(folder + "statm", fmt::format("9999 {} {} 0 0 0 0", of.pages, of.shared));
    fake.file(folder + "io", fmt::format("rchar: 7\nread_bytes: {}\nwrite_bytes: 0", of.read));
  }
  std::map<std::string, double> read(JobSensor& sensor, double seconds) {
    std::vector<Reading> readings;
    sensor.read(seconds, readings);
    std::map<std::string, double> values;
    for (const Reading& one : readings)
      if (one.value) values[std::string(one.name)] = *one.value;
    return values;
  }
  FakeRoot fake;
};

TEST_F(JobSensorTest, CountsTheJobAndWhatItStartedOnly) {
  JobSensor sensor(fake.root(), 20);
  EXPECT_FALSE(read(sensor, 0).contains("job_cpu"));
  add(31, 20, {.user = 40, .threads = 3, .pages = 500, .shared = 300, .read = 1 << 20});
  add(32, 31, {.user = 10, .pages = 100, .shared = 0});
  add(10, 1, {.user = 9000});
  const auto values = read(sensor, 0.5);
  EXPECT_NEAR(values.at("job_cpu"), 1.0, 1e-9);  // 50 ticks in half a second
  const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
  EXPECT_DOUBLE_EQ(values.at("job_memory"), page * (600 + 200 + 100 + 400));  // the largest shared part once
  EXPECT_DOUBLE_EQ(values.at("job_threads"), 5);
  EXPECT_NEAR(values.at("job_read"), 2 << 20, 1);
  EXPECT_NEAR(sensor.use().user, 1.5, 1e-9);
  EXPECT_NEAR(sensor.use().system, 0.2, 1e-9);
  EXPECT_EQ(sensor.use().processes, 3);
}

TEST_F(JobSensorTest, WhatAWorkerUsedStaysCountedWhenItIsGone) {
  JobSensor sensor(fake.root(), 20);
  add(31, 20, {.user = 300, .pages = 500});
  read(sensor, 0);
  fake.remove("proc/31");
  add(20, 10, {.user = 100, .system = 20, .children = 300, .pages = 1000, .shared = 400});
  read(sensor, 1);
  EXPECT_NEAR(sensor.use().user, 4.0, 1e-9);
  fake.remove("proc/20");  // the job has ended
  read(sensor, 2);
  EXPECT_NEAR(sensor.use().user, 4.0, 1e-9);
  EXPECT_GT(*sensor.use().peak_memory, 0);
}

TEST_F(JobSensorTest, WhatTheKernelDoesNotTellIsAbsent) {
  fake.remove("proc/20/io").remove("proc/20/statm");
  JobSensor sensor(fake.root(), 20);
  read(sensor, 0);
  const auto values = read(sensor, 1);
  EXPECT_FALSE(values.contains("job_memory"));
  EXPECT_FALSE(values.contains("job_read"));
  EXPECT_FALSE(sensor.use().read);
  EXPECT_FALSE(sensor.use().peak_memory);
}

}  // namespace
}  // namespace assay
