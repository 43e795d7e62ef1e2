// Sensors over a fabricated /proc and /sys, and the thread that reads them.
#include "harness/sensors/sensors.h"

#include "harness/sensors/series_builder.h"
#include "harness/sensors/telemetry.h"
#include "tests/unit/machine/fake_root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>

namespace assay {
namespace {

std::map<std::string, std::optional<double>> read(Sensor& sensor, double seconds = 0) {
  std::vector<Reading> readings;
  sensor.read(seconds, readings);
  std::map<std::string, std::optional<double>> values;
  for (const auto& reading : readings) values.emplace(reading.name, reading.value);
  return values;
}
using Values = std::map<std::string, std::optional<double>>;

TEST(Cpufreq, IsTheMeanOfTheCpusInUse) {
  FakeRoot fake;
  fake.file("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3000000")
      .file("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2000000")
      .file("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "1000000");
  CpufreqSensor sensor(fake.root(), {0, 1});
  ASSERT_TRUE(sensor.present());
  EXPECT_EQ(read(sensor), (Values{{"clock", 2.5e9}}));
  fake.remove("sys/devices/system/cpu");
  EXPECT_EQ(read(sensor), (Values{{"clock", std::nullopt}}));
}

TEST(Cpufreq, IsAbsentWithoutTheKernelsFiles) {
  FakeRoot fake;
  EXPECT_FALSE(CpufreqSensor(fake.root(), {0, 1}).present());
}

TEST(CpuTime, IsAFractionOfTheTimeOfItsCpusSinceTheLastReading) {
  FakeRoot fake;
  //                          user nice sys idle iowait irq softirq steal guest
  fake.file("proc/stat",
            "cpu  999 0 0 999 0 0 0 0 0 0\ncpu0 100 0 0 100 0 0 0 0 0 0\ncpu1 500 0 0 0 0 0 0 0 0 0\nintr 5");
  CpuTimeSensor sensor(fake.root(), {0});
  sensor.begin();
  EXPECT_TRUE(read(sensor).empty()) << "a fraction needs two readings";
  fake.file("proc/stat", "cpu  0 0 0 0\ncpu0 120 5 5 150 10 0 0 10 0 0\ncpu1 999 0 0 0 0 0 0 0 0 0\nintr 5");
  EXPECT_EQ(read(sensor), (Values{{"utilisation", 0.4}, {"steal", 0.1}}));
}

TEST(CpuTime, WaitsForEnoughTicks) {
  FakeRoot fake;
  fake.file("proc/stat", "cpu0 100 0 0 100 0 0 0 0 0 0");
  CpuTimeSensor sensor(fake.root(), {0});
  read(sensor);
  fake.file("proc/stat", "cpu0 101 0 0 101 0 0 0 0 0 0");
  EXPECT_TRUE(read(sensor).empty());
  fake.file("proc/stat", "cpu0 110 0 0 100 0 0 0 0 0 0");
  EXPECT_EQ(read(sensor), (Values{{"utilisation", 1.0}, {"steal", 0.0}}));
}

TEST(CpuTime, AbsentWithoutTheFileOrTheCpu) {
  FakeRoot fake;
  CpuTimeSensor sensor(fake.root(), {7});
  EXPECT_TRUE(read(sensor).empty());
  fake.file("proc/stat", "cpu0 100 0 0 100 0 0 0 0 0 0");
  EXPECT_EQ(cpu_ticks(fake.root(), {7}).has_value(), false);
}

TEST(MemoryReadings, PeakIsTheHighWaterMarkOfThisCaseOnly) {
  FakeRoot fake;
  fake.file("proc/self/status", "VmHWM:\t900 kB\nVmRSS:\t100 kB");  // the mark of an earlier case; it cannot be reset
  MemorySensor sensor(fake.root());
  sensor.begin();
  EXPECT_EQ(read(sensor), (Values{{"resident", 100 * 1024.0}, {"resident_peak", 100 * 1024.0}}));
  fake.file("proc/self/status", "VmHWM:\t900 kB\nVmRSS:\t50 kB");
  EXPECT_EQ(read(sensor), (Values{{"resident", 50 * 1024.0}, {"resident_peak", 100 * 1024.0}}));
  fake.file("proc/self/status", "VmHWM:\t1200 kB\nVmRSS:\t60 kB");
  EXPECT_EQ(read(sensor), (Values{{"resident", 60 * 1024.0}, {"resident_peak", 1200 * 1024.0}}));
}

TEST(MemoryReadings, AsksTheKernelToResetTheMark) {
  FakeRoot fake;
  fake.file("proc/self/status", "VmHWM:\t900 kB\nVmRSS:\t100 kB").file("proc/self/clear_refs", "");
  MemorySensor sensor(fake.root());
  sensor.begin();
  EXPECT_EQ(fake.root().text("proc/self/clear_refs"), "5");
}

TEST(Temperature, TakesTheHottestPackage) {
  FakeRoot fake;
  fake.file("sys/class/hwmon/hwmon0/name", "nvme")
      .file("sys/class/hwmon/hwmon0/temp1_input", "99000")
      .file("sys/class/hwmon/hwmon1/name", "coretemp")
      .file("sys/class/hwmon/hwmon1/temp1_label", "Package id 0")
      .file("sys/class/hwmon/hwmon1/temp1_input", "51000")
      .file("sys/class/hwmon/hwmon1/temp2_label", "Core 0")
      .file("sys/class/hwmon/hwmon1/temp2_input", "70000")
      .file("sys/class/hwmon/hwmon2/name", "k10temp")
      .file("sys/class/hwmon/hwmon2/temp1_label", "Tctl")
      .file("sys/class/hwmon/hwmon2/temp1_input", "62500");
  TemperatureSensor sensor(fake.root());
  ASSERT_TRUE(sensor.present());
  EXPECT_EQ(read(sensor), (Values{{"temperature", 62.5}}));
}

TEST(Temperature, FallsBackToThermalZonesOrIsAbsent) {
  FakeRoot fake;
  EXPECT_FALSE(TemperatureSensor(fake.root()).present());
  fake.file("sys/class/thermal/thermal_zone0/type", "acpitz")
      .file("sys/class/thermal/thermal_zone0/temp", "20000")
      .file("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp")
      .file("sys/class/thermal/thermal_zone1/temp", "44000");
  TemperatureSensor sensor(fake.root());
  EXPECT_EQ(read(sensor), (Values{{"temperature", 44.0}}));
}

TEST(Energy, SumsPackagesAndHandlesWrapAround) {
  FakeRoot fake;
  const auto package = [&](const std::string& name, const std::string& title, const std::string& energy) {
    fake.file("sys/class/powercap/" + name + "/name", title)
        .file("sys/class/powercap/" + name + "/max_energy_range_uj", "10000000")
        .file("sys/class/powercap/" + name + "/energy_uj", energy);
  };
  package("intel-rapl:0", "package-0", "9000000");
  package("intel-rapl:0:0", "core", "5000000");
  package("intel-rapl:1", "package-1", "1000000");
  package("intel-rapl:2", "psys", "1000000");
  package("intel-rapl-mmio:0", "package-0", "9000000");
  EnergySensor sensor(fake.root());
  ASSERT_TRUE(sensor.present());
  sensor.begin();
  EXPECT_EQ(read(sensor), (Values{{"package_energy", 0.0}}));
  package("intel-rapl:0", "package-0", "500000");  // wrapped around: 1.5 J more
  package("intel-rapl:1", "package-1", "3000000");
  EXPECT_EQ(read(sensor), (Values{{"package_energy", 3.5}}));
  sensor.begin();
  EXPECT_EQ(read(sensor), (Values{{"package_energy", 0.0}}));
  fake.remove("sys/class/powercap/intel-rapl:1");
  EXPECT_EQ(read(sensor), (Values{{"package_energy", std::nullopt}})) << "one package is not the machine";
}

TEST(Energy, AbsentIfTheCounterCannotBeRead) {
  FakeRoot fake;
  fake.file("sys/class/powercap/intel-rapl:0/name", "package-0")
      .file("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "10000000");
  EXPECT_FALSE(EnergySensor(fake.root()).present());
}

TEST(Switches, AreARate) {
  std::int64_t count = 10;
  SwitchSensor sensor([&] { return count; });
  EXPECT_TRUE(read(sensor, 0).empty());
  count = 30;
  EXPECT_TRUE(read(sensor, 0.01).empty()) << "too short for a rate";
  EXPECT_EQ(read(sensor, 2.0), (Values{{"involuntary_switches", 10.0}}));
}

TEST(CpuWait, IsTheFractionOfTimeThatTheMainThreadWaitedForACpu) {
  FakeRoot fake;
  EXPECT_FALSE(CpuWaitSensor(fake.root()).present());
  fake.file("proc/self/schedstat", "70 1000000000 3\n");
  CpuWaitSensor sensor(fake.root());
  EXPECT_TRUE(sensor.present());
  EXPECT_TRUE(read(sensor, 0).empty());
  fake.file("proc/self/schedstat", "90 1500000000 4\n");
  EXPECT_EQ(read(sensor, 2.0), (Values{{"cpu_wait", 0.25}}));
  sensor.begin();
  EXPECT_TRUE(read(sensor, 3).empty());
  fake.file("proc/self/schedstat", "0\n");
  EXPECT_FALSE(sensor.present());
}

TEST(SeriesBuilder, BoundsTheNumberOfPointsAndKeepsTheWholeSpan) {
  SeriesBuilder builder(16);
  for (int i = 0; i < 1000; ++i) {
    builder.add(i, {"level", "B", Reading::Kind::level, i});
    builder.add(i, {"rate", "1", Reading::Kind::rate, i % 2});
    builder.add(i, {"never", "1", Reading::Kind::level, std::nullopt});
  }
  const auto series = builder.take();
  ASSERT_EQ(series.size(), 2u);
  const auto& level = series.at("level");
  EXPECT_LE(level.at.size(), 16u);
  EXPECT_GE(level.at.size(), 8u);
  EXPECT_EQ(level.unit, "B");
  EXPECT_EQ(level.at.back(), 999);
  for (std::size_t i = 0; i < level.at.size(); ++i)
    EXPECT_EQ(level.values[i], level.at[i]) << "a level is the later one";
  for (const auto& value : series.at("rate").values) EXPECT_EQ(value, 0.5) << "a rate is the mean";
}

TEST(SeriesBuilder, KeepsAGapAsNull) {
  SeriesBuilder builder(16);
  builder.add(0, {"x", "1", Reading::Kind::level, 1});
  builder.add(1, {"x", "1", Reading::Kind::level, std::nullopt});
  builder.add(2, {"x", "1", Reading::Kind::level, 3});
  const auto series = builder.take();
  EXPECT_THAT(series.at("x").values, testing::ElementsAre(1.0, std::nullopt, 3.0));
}

TEST(Telemetry, HasOnlyWhatTheKernelReports) {
  FakeRoot fake;
  fake.file("proc/self/status", "VmHWM:\t100 kB\nVmRSS:\t100 kB");
  Telemetry telemetry(TelemetryOptions{.period_seconds = 0.005, .root = fake.path(), .cpus = {0}});
  telemetry.start(std::chrono::steady_clock::now());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto series = telemetry.stop();
  std::vector<std::string> names;
  for (const auto& [name, one] : series) names.push_back(name);
  EXPECT_THAT(names, testing::ElementsAre("resident", "resident_peak"));
}

TEST(Telemetry, OnThisMachineRecordsAnAllocationAndTheClock) {
  Telemetry telemetry({.period_seconds = 0.02});
  telemetry.start(std::chrono::steady_clock::now());
  constexpr std::size_t bytes = std::size_t{64} << 20;
  {
    const std::unique_ptr<char, decltype(&std::free)> memory(static_cast<char*>(std::malloc(bytes)), std::free);
    std::memset(memory.get(), 1, bytes);
    asm volatile("" : : "r"(memory.get()) : "memory");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const auto first = telemetry.stop();
  EXPECT_TRUE(telemetry.stop().empty()) << "stopping twice is harmless";
  ASSERT_TRUE(first.contains("resident_peak"));
  EXPECT_GE(*first.at("resident_peak").values.back(), static_cast<double>(bytes));
  ASSERT_TRUE(first.contains("clock"));
  EXPECT_EQ(first.at("clock").unit, "Hz");
  for (const auto& clock : first.at("clock").values) {
    EXPECT_GT(*clock, 1e8);
    EXPECT_LT(*clock, 1e10);
  }
  for (std::size_t i = 0; i < first.at("clock").at.size(); ++i) EXPECT_GE(first.at("clock").at[i], 0.0);

  telemetry.start(std::chrono::steady_clock::now());
  EXPECT_FALSE(telemetry.stop().empty()) << "a case shorter than a period still has readings";
}

}  // namespace
}  // namespace assay
