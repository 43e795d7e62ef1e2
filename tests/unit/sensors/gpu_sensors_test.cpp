// What NVML reports becomes series, energy and checks; what it refuses is absent, never 0. With the stand-in for
// libnvidia-ml, which ctest puts on the library path.
#include "harness/sensors/gpu_sensors.h"

#include "harness/run/gpu_energy.h"
#include "harness/sensors/series_builder.h"
#include "harness/sensors/telemetry.h"
#include "tests/unit/machine/nvml_script.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class GpuSensors : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!Nvml::load(why_not) || Nvml::load(why_not)->devices().empty()) GTEST_SKIP() << why_not;
    if (Nvml::load(why_not)->driver_version() != "999.1") GTEST_SKIP() << "the real library was found";
  }

  static std::map<std::string, double> read(Sensor& sensor, double seconds) {
    std::vector<Reading> readings;
    sensor.read(seconds, readings);
    std::map<std::string, double> values;
    for (const Reading& reading : readings)
      if (reading.value) values.emplace(reading.name, *reading.value);
    return values;
  }
};

TEST_F(GpuSensors, AreInBaseUnits) {
  NvmlScript script(
      "clock 1980\nmemory_clock 3201\npower 700000\npower_average 650000\npower_instant 690500\nenergy 5000000\n"
      "temperature 61\nthrottle 36\nutilisation 97\nmemory_used 1073741824\npcie_sent 12\npcie_received 34\n");
  const auto sensor = find_gpu_sensor("GPU-1", "");
  ASSERT_TRUE(sensor);
  sensor->begin();
  script.say(
      "clock 1980\nmemory_clock 3201\npower 700000\npower_average 650000\npower_instant 690500\nenergy 5002500\n"
      "temperature 61\nthrottle 36\nutilisation 97\nmemory_used 1073741824\npcie_sent 12\npcie_received 34\n");
  const auto values = read(*sensor, 0);
  EXPECT_EQ(values.at("gpu_clock"), 1.98e9);
  EXPECT_EQ(values.at("gpu_memory_clock"), 3.201e9);
  EXPECT_EQ(values.at("gpu_power"), 650);  // the average, if the GPU reports it separately
  EXPECT_EQ(values.at("gpu_power_instant"), 690.5);
  EXPECT_DOUBLE_EQ(values.at("gpu_energy"), 2.5);  // since begin()
  EXPECT_EQ(values.at("gpu_temperature"), 61);
  EXPECT_EQ(values.at("gpu_throttle_reasons"), 36);
  EXPECT_EQ(values.at("gpu_utilisation"), 0.97);
  EXPECT_EQ(values.at("gpu_memory_used"), 1073741824.0);
  EXPECT_EQ(values.at("gpu_pcie_sent"), 12e3);
  EXPECT_EQ(values.at("gpu_pcie_received"), 34e3);
}

TEST_F(GpuSensors, RefusedValuesAreAbsent) {
  const NvmlScript script("clock 1000\npower refused\n");
  const auto sensor = find_gpu_sensor("GPU-1", "");
  sensor->begin();
  EXPECT_THAT(read(*sensor, 0), ElementsAre(std::pair<const std::string, double>("gpu_clock", 1e9)));
  Telemetry telemetry({.period_seconds = 0.01, .gpu_uuid = "GPU-1", .host = false});
  telemetry.start(std::chrono::steady_clock::now());
  const auto series = telemetry.stop();
  EXPECT_TRUE(series.contains("gpu_clock"));
  EXPECT_EQ(series.size(), 1u);
}

TEST_F(GpuSensors, LinkRatesAreDifferencesOfCounters) {
  NvmlScript script("nvlink_sent 100\nnvlink_received 7\n");
  const auto sensor = find_gpu_sensor("GPU-1", "");
  sensor->begin();
  EXPECT_FALSE(read(*sensor, 10).contains("gpu_nvlink_sent"));
  script.say("nvlink_sent 300\nnvlink_received 7\n");
  const auto values = read(*sensor, 14);
  EXPECT_EQ(values.at("gpu_nvlink_sent"), 200 * 1024 / 4.0);
  EXPECT_EQ(values.at("gpu_nvlink_received"), 0);
}

TEST_F(GpuSensors, Nvlink5LinksAreSummed) {
  NvmlScript script("nvlinks 3\nnvlink5_sent 100\nnvlink5_errors 4\nnvlink5_recoveries 0\n");
  const auto sensor = find_gpu_sensor("GPU-1", "");
  sensor->begin();
  read(*sensor, 10);
  script.say("nvlinks 3\nnvlink5_sent 500\nnvlink5_errors 6\nnvlink5_recoveries 1\n");
  const auto values = read(*sensor, 12);
  EXPECT_EQ(values.at("gpu_nvlink_sent"), 3 * 400 / 2.0);
  EXPECT_FALSE(values.contains("gpu_nvlink_received"));
  EXPECT_EQ(values.at("gpu_nvlink_errors"), 3);
  EXPECT_EQ(values.at("gpu_nvlink_corrected"), 6);
}

TEST_F(GpuSensors, ThrottledTimeIsCountedFromTheStartOfTheCase) {
  NvmlScript script("cuda_version 13000\nthrottled_software_thermal 7000000000\nthrottled_power_brake 5\n");
  const auto sensor = find_gpu_sensor("GPU-1", "");
  sensor->begin();
  script.say("cuda_version 13000\nthrottled_software_thermal 7250000000\nthrottled_power_brake 5\n");
  const auto values = read(*sensor, 0);
  EXPECT_NEAR(values.at("gpu_throttled_software_thermal"), 0.25, 1e-9);
  EXPECT_EQ(values.at("gpu_throttled_power_brake"), 0);
  EXPECT_FALSE(values.contains("gpu_throttled_hardware_thermal"));
}

// Drivers before CUDA 13 have other numbers for these counters, and settings under the new numbers.
TEST_F(GpuSensors, ThrottledTimeIsReadWhereTheDriverHasIt) {
  const std::pair<int, std::optional<double>> drivers[] = {{13020, 2.0}, {12090, 2.0}, {12080, std::nullopt}};
  for (const auto& [version, seconds] : drivers) {
    const auto counts = [&, driver = version](const char* count) {
      return fmt::format("cuda_version {}\npower_smoothing {}\nthrottled_hardware_thermal {}\n", driver, count, count);
    };
    NvmlScript script(counts("1000000000"));
    const auto sensor = find_gpu_sensor("GPU-1", "");
    sensor->begin();
    script.say(counts("3000000000"));
    const auto values = read(*sensor, 0);
    EXPECT_FALSE(values.contains("gpu_throttled_software_thermal")) << version;
    const auto found = values.find("gpu_throttled_hardware_thermal");
    EXPECT_EQ(found == values.end() ? std::nullopt : std::optional(found->second), seconds) << version;
  }
}

TEST_F(GpuSensors, ActivityIsAFractionOfThePeak) {
  NvmlScript script("gpm 1\nsm_active 80\ntensor_active 50.5\n");
  const auto sensor = find_gpu_sensor("GPU-1", "");
  sensor->begin();
  EXPECT_FALSE(read(*sensor, 0).contains("sm_active"));  // a mean needs two readings
  auto values = read(*sensor, 0.25);
  EXPECT_DOUBLE_EQ(values.at("sm_active"), 0.8);
  EXPECT_DOUBLE_EQ(values.at("tensor_active"), 0.505);
  EXPECT_FALSE(values.contains("dram_active"));
  EXPECT_FALSE(read(*sensor, 0.3).contains("sm_active"));  // sooner than the counters are refreshed
  EXPECT_TRUE(read(*sensor, 0.5).contains("sm_active"));
  sensor->begin();
  EXPECT_FALSE(read(*sensor, 0).contains("sm_active"));  // not since the case before
}

TEST_F(GpuSensors, ActivityIsAbsentWhereTheGpuDoesNotCountIt) {
  const NvmlScript script("clock 1000\nsm_active 80\n");
  const auto sensor = find_gpu_sensor("GPU-1", "");
  sensor->begin();
  read(*sensor, 0);
  EXPECT_FALSE(read(*sensor, 1).contains("sm_active"));
}

TEST_F(GpuSensors, ASliceHasNoActivity) {
  const NvmlScript script("mig 1\ngpm 1\nsm_active 80\n");
  const auto sensor = find_gpu_sensor("GPU-1", "");
  sensor->begin();
  read(*sensor, 0);
  EXPECT_FALSE(read(*sensor, 1).contains("sm_active"));
}

TEST_F(GpuSensors, ErrorsAreCountedFromTheStartOfTheCase) {
  NvmlScript script("ecc_corrected 7\npcie_replays 2\n");
  const auto sensor = find_gpu_sensor("GPU-1", "");
  sensor->begin();
  script.say("ecc_corrected 9\npcie_replays 2\n");
  auto values = read(*sensor, 0);
  EXPECT_EQ(values.at("gpu_ecc_corrected"), 2);
  EXPECT_EQ(values.at("gpu_pcie_replays"), 0);
  EXPECT_FALSE(values.contains("gpu_ecc_uncorrected"));
  EXPECT_FALSE(read(*sensor, 0.5).contains("gpu_pcie_replays"));  // read once per second
}

TEST_F(GpuSensors, AClockOfZeroIsAbsent) {
  const NvmlScript script("clock 0\nmemory_temperature 0\nutilisation 0\n");
  const auto values = read(*find_gpu_sensor("GPU-1", ""), 0);
  EXPECT_FALSE(values.contains("gpu_clock"));
  EXPECT_FALSE(values.contains("gpu_memory_temperature"));
  EXPECT_EQ(values.at("gpu_utilisation"), 0);
}

TEST_F(GpuSensors, AGpuThatNvmlDoesNotKnowHasNoSensor) {
  const NvmlScript script("unknown_uuid 1\nunknown_pci 1\n");
  EXPECT_FALSE(find_gpu_sensor("GPU-1", "0000:01:00.0"));
  EXPECT_FALSE(GpuHealth("GPU-1", "").present());
}

TEST_F(GpuSensors, OnlyErrorsDuringTheCaseAreNamed) {
  NvmlScript script("ecc_uncorrected 3\nrows_remapped 1\nnvlinks 2\nnvlink_recoveries 5\n");
  GpuHealth health("GPU-1", "");
  ASSERT_TRUE(health.present());
  EXPECT_THAT(health.take(), IsEmpty());
  script.say("ecc_uncorrected 5\nrows_remapped 2\nremap_pending 1\nnvlinks 2\nnvlink_recoveries 6\nnvlink_ecc 1\n");
  EXPECT_THAT(health.take(), ElementsAre("2 uncorrectable ECC errors", "1 memory rows remapped",
                                         "1 memory rows to be remapped by a reset", "4 NVLink errors"));
  EXPECT_THAT(health.take(), IsEmpty());
}

TEST_F(GpuSensors, ASliceHasTheErrorsOfItsGpu) {
  NvmlScript script("mig 1\necc_uncorrected 3\n");
  GpuHealth health("MIG-1", "");
  script.say("mig 1\necc_uncorrected 5\n");
  EXPECT_THAT(health.take(), ElementsAre("2 uncorrectable ECC errors"));
}

TEST_F(GpuSensors, CorrectedLinkErrorsAreNamedAboveARate) {
  NvmlScript script("nvlinks 2\nnvlink_replays 5\nnvlink_crc_flit 3\n");
  GpuHealth health("GPU-1", "");
  script.say("nvlinks 2\nnvlink_replays 205\nnvlink_crc_flit 303\nnvlink_crc_data 0\n");  // 2 x 500 more
  EXPECT_EQ(health.corrected_link_errors(4), "250 corrected NVLink errors per second");
  EXPECT_EQ(health.corrected_link_errors(20), "");
  EXPECT_THAT(health.take(), IsEmpty());
  script.say("nvlinks 2\nnvlink_replays 50\nnvlink_crc_flit 3\n");
  EXPECT_EQ(health.corrected_link_errors(1e-3), "");  // 90 are few, however short the case
}

TEST_F(GpuSensors, OldLinkCountersMeanNothingOnNvlink5) {
  const std::string links = "nvlinks 2\nnvlink_version 7\nnvlink5_errors 0\n";
  NvmlScript script(links + "nvlink5_recoveries 0\n");
  GpuHealth health("GPU-1", "");
  script.say(links + "nvlink5_recoveries 0\nnvlink_replays 9999\nnvlink_recoveries 9\nnvlink_crc_flit 9999\n");
  EXPECT_EQ(health.corrected_link_errors(1), "");
  EXPECT_THAT(health.take(), IsEmpty());
  script.say(links + "nvlink5_recoveries 1\n");
  EXPECT_THAT(health.take(), ElementsAre("2 NVLink errors"));
}

TEST_F(GpuSensors, ALostGpuIsNamed) {
  NvmlScript script("memory_used 1\n");
  GpuHealth health("GPU-1", "");
  EXPECT_THAT(health.take(), IsEmpty());
  script.say("lost 1\n");
  EXPECT_THAT(health.take(), ElementsAre(testing::HasSubstr("lost")));
}

TEST_F(GpuSensors, AnXidDuringACaseIsNamed) {
  NvmlScript script("xid 13\n");
  GpuHealth health("GPU-1", "");
  EXPECT_THAT(health.take(), IsEmpty());
  script.say("xid 13\nxid 79\nxid 94 at 1e9\n");
  EXPECT_THAT(health.take(), ElementsAre("XID 79"));
}

// Whatever take() has named before, and corrected errors too.
TEST_F(GpuSensors, CountersThatGrewDuringACase) {
  NvmlScript script("ecc_uncorrected 3\nnvlinks 1\nnvlink_replays 5\n");
  GpuHealth health("GPU-1", "");
  EXPECT_THAT(health.counted(), IsEmpty());
  script.say("ecc_uncorrected 5\nnvlinks 1\nnvlink_replays 9\nxid 79\nxid 79\n");
  (void)health.take();
  const std::vector<ErrorCounter> grown = health.counted();
  std::map<std::string, std::uint64_t> by_name;
  for (const ErrorCounter& counter : grown) {
    EXPECT_FALSE(counter.device.empty());
    by_name[counter.name] = counter.value;
  }
  EXPECT_EQ(by_name,
            (std::map<std::string, std::uint64_t>{{"ecc_uncorrected", 2}, {"nvlink_corrected", 4}, {"xid_79", 2}}));
}

TEST(MaskSeries, NeighboursAreCombined) {
  SeriesBuilder builder(2);
  for (int i = 0; i < 4; ++i)
    builder.add(i, {"gpu_throttle_reasons", "1", Reading::Kind::mask, static_cast<double>(1 << i)});
  const auto series = builder.take().at("gpu_throttle_reasons");
  double all = 0;
  for (const auto& value : series.values) all += *value;
  EXPECT_EQ(all, 15);
}

TEST(GpuEnergy, IsACounterDifferenceOverAtLeastASecond) {
  // 100 J at 0 s, 300 J at 1 s, 700 J at 2 s: between 0.5 s and 2 s the counter goes from 200 to 700 J.
  const Series energy{"J", {0, 1, 1.5, 2}, {100, 300, std::nullopt, 700}};
  EXPECT_NEAR(*mean_watts(energy, 0.5, 2), 500 / 1.5, 1e-9);
  EXPECT_FALSE(mean_watts(energy, 0.5, 1.4));  // too short for the sensor
  EXPECT_FALSE(mean_watts(energy, 0.5, 2.5));  // beyond its readings
  EXPECT_FALSE(mean_watts({"J", {0, 3}, {5, 5}}, 0, 3));
}

TEST(GpuLevels, AreOfTheReadingsInTheWindow) {
  const std::map<std::string, Series> telemetry = {{"gpu_temperature", {"degC", {0, 1, 2, 9}, {50, 80, 89, 99}}},
                                                   {"gpu_power", {"W", {0, 1, 2}, {100, 400, 500}}},
                                                   {"gpu_clock", {"Hz", {1, 2}, {std::nullopt, 1.41e9}}}};
  EXPECT_EQ(gpu_levels(telemetry, 1, 3), "89 degC, 1.41 GHz, 450 W");
  EXPECT_EQ(gpu_levels(telemetry, 4, 5), "");
}

TEST(SlowedBy, NamesWhatLoweredClocksInTheWindow) {
  const std::map<std::string, Series> telemetry = {
      {"gpu_throttle_reasons", {"1", {0, 1, 2, 3, 4}, {0x40, 0x4, 0x20 | 0x4, std::nullopt, 0x80}}}};
  EXPECT_EQ(slowed_by(telemetry, 0.5, 3.5), "thermal (software)");
  EXPECT_EQ(slowed_by(telemetry, 0.5, 1.7), "");  // dense work reaches the power limit
  EXPECT_EQ(slowed_by(telemetry, 1.8, 2.2), "thermal (software)");
  EXPECT_EQ(slowed_by(telemetry, 0, 4), "thermal (software), thermal (hardware), power brake");
}

// The reasons at the readings show nothing: the GPU was slowed down between them.
TEST(SlowedBy, CountersMissNothingBetweenReadings) {
  const std::map<std::string, Series> telemetry = {
      {"gpu_throttle_reasons", {"1", {0, 0.25, 0.5, 0.75}, {0, 0, 0, 0}}},
      {"gpu_throttled_hardware_thermal", {"s", {0, 0.25, 0.5, 0.75}, {0, 0, 0.01, 0.01}}},
      {"gpu_throttled_power_brake", {"s", {0, 0.25, 0.5, 0.75}, {3, std::nullopt, 3, 4}}}};
  EXPECT_EQ(slowed_by(telemetry, 0, 0.25), "");
  EXPECT_EQ(slowed_by(telemetry, 0.3, 0.4), "thermal (hardware)");
  EXPECT_EQ(slowed_by(telemetry, 0.5, 0.7), "power brake");
  EXPECT_EQ(slowed_by(telemetry, 0.8, 1), "");
}

TEST(ThrottledSamples, AreThoseInWhichACounterGrew) {
  const std::vector<double> at = {0.1, 0.2, 0.3, 0.6, 0.8, 0.9};
  std::map<std::string, Series> telemetry = {
      {"gpu_throttled_software_thermal", {"s", {0, 0.25, 0.5, 0.75, 1}, {0, 0, 0.1, 0.1, 0.1}}},
      {"gpu_throttled_power_brake", {"s", {0, 0.25, 0.5, 0.75, 1.1}, {0, 0, 0, 0, 1e-6}}}};
  EXPECT_EQ(throttled_samples(telemetry, at, 1), (std::vector<int>{1, 2, 3, 4, 5}));
  telemetry.erase("gpu_throttled_power_brake");
  EXPECT_EQ(throttled_samples(telemetry, at, 1), (std::vector<int>{1, 2}));
  telemetry["gpu_throttled_software_thermal"].values.assign(5, 0.1);
  EXPECT_EQ(throttled_samples(telemetry, at, 1), std::vector<int>());
  EXPECT_FALSE(throttled_samples(telemetry, {}, 1));
  EXPECT_FALSE(throttled_samples({}, at, 1));
}

TEST(LockedClock, IsConstantBelowTheMaximumWithoutAReason) {
  const Series none{"1", {0, 1, 2, 3}, {1, 0, 0, 0}}, capped{"1", {0, 1, 2, 3}, {0, 4, 4, 4}};
  const Series low{"Hz", {0, 1, 2, 3}, {0.3e9, 1.41e9, 1.41e9, 1.41e9}};
  EXPECT_EQ(locked_clock(low, none, 1.98e9, 0.5, 3.5), "locked at 1.41 of 1.98 GHz");
  EXPECT_EQ(locked_clock(low, capped, 1.98e9, 0.5, 3.5), "");
  EXPECT_EQ(locked_clock(low, none, 1.98e9, 0, 3.5), "");    // it was idle at first
  EXPECT_EQ(locked_clock(low, none, 1.42e9, 0.5, 3.5), "");  // close to its maximum
  EXPECT_EQ(locked_clock({"Hz", {1, 2, 3}, {1.41e9, 1.5e9, 1.6e9}}, none, 1.98e9, 0.5, 3.5), "");
}

TEST_F(GpuSensors, SlownessIsAThrottleReasonOrALockedClock) {
  const NvmlScript script("max_clock 1980\n");
  const GpuHealth health("GPU-1", "");
  std::map<std::string, Series> telemetry = {{"gpu_clock", {"Hz", {1, 2, 3}, {1.2e9, 1.2e9, 1.2e9}}},
                                             {"gpu_throttle_reasons", {"1", {1, 2, 3}, {0, 0, 0}}}};
  EXPECT_EQ(health.slowness(telemetry, 0.5, 3.5), "locked at 1.20 of 1.98 GHz");
  telemetry["gpu_throttle_reasons"].values[1] = 0x20;
  EXPECT_EQ(health.slowness(telemetry, 0.5, 3.5), "thermal (software)");
  telemetry = {{"gpu_throttled_power_brake", {"s", {1, 2}, {0, 0.1}}}};
  EXPECT_EQ(health.slowness(telemetry, 1.5, 1.6), "power brake");
  EXPECT_EQ(health.slowness({}, 0.5, 3.5), "");
}

TEST_F(GpuSensors, ASliceHasNoEnergy) {
  const NvmlScript script("mig 1\nenergy 5000\n");
  EXPECT_FALSE(read(*find_gpu_sensor("GPU-1", ""), 0).contains("gpu_energy"));
}

TEST(GpuEnergy, EfficiencyNeedsSamplesThatFillTheWindow) {
  Measurement measured;
  measured.values = {0.1, 0.1, 0.1};
  measured.repetitions = 10;
  measured.window_seconds = 3.2;
  EXPECT_TRUE(samples_fill_window(measured));
  measured.window_seconds = 4;
  EXPECT_FALSE(samples_fill_window(measured));
  std::vector<Metric> metrics(1);
  metrics[0].name = "throughput", metrics[0].value = 1e15, metrics[0].unit = "FLOP/s";
  add_gpu_energy(500, false, metrics);
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics[1].name, "gpu_power");
}

TEST(GpuEnergy, GivesWorkPerJoule) {
  const auto comm = make_self_communicator();
  EXPECT_EQ(gpu_watts({{"gpu_energy", {"J", {0, 4}, {0, 2000}}}}, 1, 3, *comm), 500);
  EXPECT_FALSE(gpu_watts({}, 1, 3, *comm));
  std::vector<Metric> metrics(2);
  metrics[0].name = "throughput", metrics[0].value = 1e15, metrics[0].unit = "FLOP/s";
  metrics[1].name = "step_time", metrics[1].value = 0.1, metrics[1].unit = "s";
  add_gpu_energy(500, true, metrics);
  ASSERT_EQ(metrics.size(), 4u);
  EXPECT_EQ(metrics[2].name, "gpu_power");
  EXPECT_EQ(metrics[2].unit, "W");
  EXPECT_EQ(metrics[3].name, "gpu_energy_efficiency");
  EXPECT_EQ(metrics[3].unit, "FLOP/J");
  EXPECT_DOUBLE_EQ(*metrics[3].value, 2e12);
  EXPECT_EQ(metrics[3].better, Better::higher);
}

}  // namespace
}  // namespace assay
